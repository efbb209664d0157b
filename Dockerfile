# docker build -t apply-service .                       for a CPU, the embedded model inside
# docker build --target cuda -t apply-service:cuda .    for an NVIDIA GPU
# docker build --build-arg BAKED_MODEL= .               without a model; mount one, see docs/operations.md
ARG PYTHON_IMAGE=python:3.11-slim
ARG NODE_IMAGE=node:22-slim

# The page that the server shows at /.
FROM ${NODE_IMAGE} AS page
# Another package registry.
ARG NPM_REGISTRY=https://registry.npmjs.org
WORKDIR /src/clients/page
COPY clients/page/package.json clients/page/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund --registry "${NPM_REGISTRY}"
COPY clients/page/build.mjs ./
COPY clients/page/src ./src
RUN npm run build

FROM ${PYTHON_IMAGE} AS packages
# Another package index, for everything but the CPU builds of torch.
ARG PIP_INDEX_URL=https://pypi.org/simple
ENV PIP_INDEX_URL=${PIP_INDEX_URL} \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:${PATH}
WORKDIR /src
COPY constraints.txt ./

FROM packages AS cpu-packages
# This index has builds of torch for the CPU alone, which are ten times smaller.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --constraint constraints.txt --extra-index-url "${TORCH_INDEX}" torch
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY apply_service ./apply_service
COPY --from=page /src/apply_service/http/page/static ./apply_service/http/page/static
COPY batching ./batching
COPY kernels ./kernels
COPY lookup ./lookup
COPY snippets ./snippets
RUN pip install --constraint constraints.txt ".[service,otel]"

FROM packages AS cuda-packages
RUN pip install --constraint constraints.txt torch
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY apply_service ./apply_service
COPY --from=page /src/apply_service/http/page/static ./apply_service/http/page/static
COPY batching ./batching
COPY kernels ./kernels
COPY lookup ./lookup
COPY snippets ./snippets
RUN pip install --constraint constraints.txt ".[service,gpu,otel]"

# The model is part of the image, so a container starts without a network.
FROM cpu-packages AS model
ARG BAKED_MODEL=embedded
ENV APPLY_SERVICE_CACHE=/var/lib/apply-service \
    HF_HOME=/var/lib/apply-service/hub
RUN mkdir -p /var/lib/apply-service \
    && if [ -n "${BAKED_MODEL}" ]; then apply-service model prepare "${BAKED_MODEL}"; fi

FROM ${PYTHON_IMAGE} AS runtime
ARG BAKED_MODEL=embedded
ENV PATH=/opt/venv/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    APPLY_SERVICE_CACHE=/var/lib/apply-service \
    APPLY_SERVICE_CREATE_KEY=true \
    APPLY_SERVICE_HOST=0.0.0.0 \
    APPLY_SERVICE_KEYS_FILE=/etc/apply-service/keys.json \
    APPLY_SERVICE_MODEL=${BAKED_MODEL:-embedded} \
    HF_HOME=/var/lib/apply-service/hub \
    HF_HUB_OFFLINE=1 \
    TRITON_CACHE_DIR=/tmp/triton
RUN useradd --create-home --uid 10001 apply \
    && install --directory --owner=apply /etc/apply-service
WORKDIR /home/apply
COPY --from=model --chown=apply:apply /var/lib/apply-service /var/lib/apply-service
EXPOSE 8722
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('APPLY_SERVICE_PORT', '8722') + '/health/ready', timeout=4)"]
CMD ["apply-service", "serve"]

FROM runtime AS cuda
# Triton compiles a launcher for each kernel on the machine that runs it.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY --from=cuda-packages /opt/venv /opt/venv
ENV APPLY_SERVICE_DEVICE=cuda
USER apply

FROM runtime AS cpu
COPY --from=cpu-packages /opt/venv /opt/venv
USER apply
