# Two images of the service, see docs/container.md:
#
#   docker build --target words -t labelspace:words .    a model of words, no torch
#   docker build --target serve -t labelspace:serve .    any model, torch for the processor
#
# BASE needs Python 3.11 or newer with pip. TORCH_INDEX is a package index whose torch is built for the processor alone;
# PyTorch's site names it. Leave it empty where pip finds such a torch by itself.

ARG BASE=python:3.12-slim

FROM ${BASE} AS source
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
RUN python3 -m venv --without-pip /opt/labelspace
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src src

# What a model of words and the service import; the package comes without the rest of what it depends on. The last line
# tries the imports, and so compiles only these modules: nothing can be compiled later.
FROM source AS words-packages
RUN python3 -m pip --python /opt/labelspace/bin/python install --no-compile --constraint constraints.txt \
        filelock numpy pyarrow pyyaml rich safetensors scikit-learn scipy typer \
        backports.zstd prometheus-client pydantic starlette uvicorn \
    && python3 -m pip --python /opt/labelspace/bin/python install --no-compile --no-deps . \
    && find /opt/labelspace -type d \( -name tests -o -name include \) -prune -exec rm -r {} + \
    && find /opt/labelspace \( -name '*.p[yx][xd]' -o -name 'libarrow_flight*' -o -name 'libarrow_s3*' \) -delete \
    && /opt/labelspace/bin/python -c 'import labelspace.classify.tables.stream, labelspace.classify.words, labelspace.serve.run'

FROM source AS serve-packages
ARG TORCH_INDEX=
RUN python3 -m pip --python /opt/labelspace/bin/python install --no-compile --constraint constraints.txt \
        ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch \
    && /opt/labelspace/bin/python -B -c 'import sys, torch; sys.exit(torch.version.cuda and "this torch is built for CUDA, several GB; give TORCH_INDEX")' \
    && python3 -m pip --python /opt/labelspace/bin/python install --no-compile --constraint constraints.txt '.[serve]' \
    && find /opt/labelspace -type d \( -name tests -o -name include -o -path '*/torch/test' \) -prune -exec rm -r {} + \
    && find /opt/labelspace -path '*/torch/bin/*' -not -name torch_shm_manager -delete \
    && find /opt/labelspace \( -name '*.p[yx][xd]' -o -name 'libarrow_flight*' -o -name 'libarrow_s3*' \) -delete \
    && /opt/labelspace/bin/python -c 'import labelspace.classify.tables.stream, labelspace.classify.zero_shot, labelspace.serve.run, labelspace.serve.label_texts'

# Nothing is written but below /tmp, so a read-only file system will do. The model is mounted, and the hub never asked.
FROM ${BASE} AS runtime
ENV PATH=/opt/labelspace/bin:$PATH \
    HOME=/tmp \
    HF_HUB_OFFLINE=1 \
    JOBLIB_MULTIPROCESSING=0 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["labelspace", "serve", "/model", "--host", "0.0.0.0"]

FROM runtime AS words
COPY --from=words-packages /opt/labelspace /opt/labelspace

FROM runtime AS serve
COPY --from=serve-packages /opt/labelspace /opt/labelspace
