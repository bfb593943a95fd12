"""The versions that name a binary's folder are those that its module builds."""

import re

import pytest

from tools.controlplane import versions
from tools.controlplane.build import MODULE_DIR

REQUIRED = [
    (".", "k8s.io/kubernetes", versions.KUBERNETES),
    ("companions", "sigs.k8s.io/kwok", versions.KWOK),
    ("companions", "github.com/google/go-containerregistry", versions.TOOLS["crane"]),
    ("companions", "github.com/yannh/kubeconform", versions.TOOLS["kubeconform"]),
    ("companions", "helm.sh/helm/v4", versions.TOOLS["helm"]),
]


@pytest.mark.parametrize(("folder", "module", "version"), REQUIRED)
def test_go_mod_requires_the_version_by_which_we_call_it(folder, module, version):
    text = (MODULE_DIR / folder / "go.mod").read_text()

    assert re.findall(rf"^\t{re.escape(module)} (\S+)", text, re.MULTILINE) == [version]
