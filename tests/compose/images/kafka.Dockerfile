# In place of apache/kafka: the jars of the same version, behind the paths, the user, the volumes and the variables of the
# official image. Debian's Java 17 runs them; the official image has Alpine with Java 21.
FROM localhost/bmq-rehearsal-debian
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
COPY libs/ /opt/kafka/libs/
COPY kafka-run /etc/kafka/docker/run
RUN useradd --create-home --uid 1000 --shell /bin/bash appuser \
    && mkdir -p /opt/kafka/config /var/lib/kafka/data /etc/kafka/secrets /mnt/shared/config \
    && chmod 755 /etc/kafka/docker/run \
    && chown -R appuser /opt/kafka /var/lib/kafka /etc/kafka /mnt/shared/config
USER appuser
EXPOSE 9092
VOLUME ["/etc/kafka/secrets", "/var/lib/kafka/data", "/mnt/shared/config"]
CMD ["/etc/kafka/docker/run"]
