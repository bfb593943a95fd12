# quorate's image, where there is a daemon and a registry. Without either: make image, which builds
# an image of the same packages from Debian's own Python, smaller, and the same bytes each time.
FROM python:3.11-slim-bookworm AS build
RUN python -m venv --without-pip /opt/quorate
COPY requirements-build.lock requirements-image.lock /
RUN pip install --no-compile --require-hashes --only-binary :all: -r /requirements-build.lock \
 && pip --python /opt/quorate install --no-compile --require-hashes --only-binary :all: \
      -r /requirements-image.lock
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN pip wheel --no-build-isolation --no-deps --wheel-dir /wheel /source \
 && pip --python /opt/quorate install --no-compile --no-deps --no-index /wheel/*.whl \
 && python -m compileall -q --invalidation-mode unchecked-hash /opt/quorate

FROM python:3.11-slim-bookworm
COPY --from=build /opt/quorate /opt/quorate
ENV PATH=/opt/quorate/bin:$PATH PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 65532:65532
EXPOSE 10271 10273
ENTRYPOINT ["quorate"]
CMD ["run"]
