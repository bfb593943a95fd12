"""The docs site: what mkdocs needs beyond ``mkdocs.yml``."""
