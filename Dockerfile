# docker build -t apply-service . && docker run -p 127.0.0.1:8722:8722 apply-service
FROM python:3.11-slim

# The index of torch builds: this one has builds for the CPU alone, which are ten times smaller.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    APPLY_SERVICE_CACHE=/var/lib/apply-service \
    APPLY_SERVICE_HOST=0.0.0.0

WORKDIR /opt/apply-service
COPY constraints.txt ./
RUN pip install --constraint constraints.txt --extra-index-url "${TORCH_INDEX}" torch

COPY pyproject.toml README.md LICENSE ./
COPY apply_service ./apply_service
COPY batching ./batching
COPY kernels ./kernels
COPY lookup ./lookup
RUN pip install --constraint constraints.txt ".[service]" \
    && useradd --create-home --uid 10001 apply \
    && install --directory --owner=apply /var/lib/apply-service

USER apply
# The model is part of the image, so a container starts without a network.
RUN apply-service model prepare
ENV HF_HUB_OFFLINE=1

EXPOSE 8722
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8722/health/ready', timeout=4)"]
CMD ["apply-service", "serve"]
