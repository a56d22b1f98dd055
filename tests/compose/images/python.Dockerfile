# In place of python:3.11-slim-bookworm: Debian's Python of the same version, at the paths of the official image. An
# environment at /usr/local has bin/python, bin/pip and lib/python3.11/site-packages there, as the official image does.
FROM localhost/bmq-rehearsal-debian
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3.11 python3.11-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3.11 -m venv /usr/local
# pip does not look at Debian's certificates by itself.
COPY pip.conf /etc/pip.conf
ARG BMQ_MAVEN_REPOSITORY=
ENV BMQ_MAVEN_REPOSITORY=$BMQ_MAVEN_REPOSITORY
CMD ["python3"]
