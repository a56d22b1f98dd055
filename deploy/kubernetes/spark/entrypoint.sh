#!/usr/bin/env bash
# What Spark starts in its pods on Kubernetes: `driver …` or `executor`. Spark says the rest in variables.
set -euo pipefail

role=$1
shift

case "$role" in
driver)
    exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
    ;;
executor)
    options=()
    # One option of the JVM in each: SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …
    for ((i = 0; ; i++)); do
        name=SPARK_JAVA_OPT_$i
        [ -n "${!name+set}" ] || break
        options+=("${!name}")
    done
    exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" \
        --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
*)
    echo "The first argument is $role, but it must be driver or executor." >&2
    exit 2
    ;;
esac
