# In place of prom/prometheus: Debian's Prometheus, which is older, with the user, the folder and the command of the
# official image.
FROM localhost/bmq-rehearsal-debian
RUN apt-get update \
    && apt-get install --yes --no-install-recommends prometheus \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner nobody --group nogroup /prometheus
USER nobody
EXPOSE 9090
VOLUME ["/prometheus"]
WORKDIR /prometheus
ENTRYPOINT ["/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
