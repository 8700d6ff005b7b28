# Eddyline with Spark and Java: docker build -t eddyline .
#   docker run --rm --init --shm-size=2g -v "$PWD:/data" eddyline run first.sql
# docs/installation.md says more. EXTRAS chooses the extras: --build-arg EXTRAS=spark,kafka,delta
FROM python:3.12-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim-bookworm
ARG EXTRAS=spark
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[$EXTRAS]" \
    && useradd --system --create-home --home-dir /var/lib/eddyline eddyline \
    && mkdir /data && chown eddyline /data
USER eddyline
WORKDIR /data
# The kernels are compiled into the image, for the kind of processor that builds it; others compile them again, once.
ENV NUMBA_CACHE_DIR=/var/lib/eddyline/kernels PYTHONUNBUFFERED=1
COPY examples/join.sql /tmp/join.sql
RUN eddyline run /tmp/join.sql --engine local > /dev/null && eddyline doctor --engine local
ENTRYPOINT ["eddyline"]
CMD ["--help"]
