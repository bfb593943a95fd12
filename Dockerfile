# quorate's image, where there is a daemon and a registry. Without either: make image, which builds
# an image of the same packages from Debian's own Python, smaller, and the same bytes each time.
FROM python:3.11-slim-bookworm AS build
COPY requirements-image.lock /
RUN pip install --no-compile --require-hashes --only-binary :all: --target /packages \
      -r /requirements-image.lock
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN pip install --no-compile --no-deps --target /packages /source \
 && python -m compileall -q --invalidation-mode unchecked-hash /packages

FROM python:3.11-slim-bookworm
COPY --from=build /packages /opt/quorate
ENV PYTHONPATH=/opt/quorate PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 65532:65532
EXPOSE 10271 10272
ENTRYPOINT ["python", "-m", "quorate"]
CMD ["run"]
