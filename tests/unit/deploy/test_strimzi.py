"""The topics and users for Strimzi are those that the service, a publisher and a consumer need."""

from typing import Any

import yaml

from bmq.config import load_config
from bmq.job.service import FEED_PARTITIONS
from bmq.kafka_io.topics import _BROKERS_TIME, _COMPACTED
from tests.kafka.test_secured import RIGHTS
from tests.manifests import FOLDER, read_document
from tests.secured import Right, right

CONFIG = load_config(FOLDER / "base" / "bmq.toml")
TOPICS = list(yaml.safe_load_all((FOLDER / "strimzi" / "topics.yaml").read_text()))
USERS = list(yaml.safe_load_all((FOLDER / "strimzi" / "users.yaml").read_text()))
FEEDS = [topic for feed in CONFIG.feeds.values() for topic in feed.every_topic]


def test_the_topics_are_those_that_the_service_would_create() -> None:
    topics = CONFIG.topics
    usual: tuple[int, dict[str, str]] = (FEED_PARTITIONS, {})
    created = dict.fromkeys([*FEEDS, topics.events, topics.replies, topics.dead_letter], usual) | {
        topics.control: (1, _COMPACTED | _BROKERS_TIME),
        topics.markers: (1, {}),
    }

    declared = {
        topic["metadata"]["name"]: (topic["spec"]["partitions"], topic["spec"].get("config", {})) for topic in TOPICS
    }

    assert declared == created
    assert len(declared) == len(TOPICS)
    assert topics.membership is None
    assert [name for name, feed in CONFIG.feeds.items() if feed.idle_advance] == []


def test_the_users_have_the_least_rights_that_were_tried_on_a_broker() -> None:
    rights = {user["metadata"]["name"]: rights_of(user) for user in USERS}
    feeds = {right("TOPIC", feed, "READ") for feed in FEEDS}

    assert rights == {
        "bmq-service": {*RIGHTS["service"], *feeds},
        "bmq-publisher": {*RIGHTS["publisher"]},
        "bmq-consumer": {*RIGHTS["consumer"]},
    }


def rights_of(user: Any) -> set[Right]:
    return {
        right(
            acl["resource"]["type"].replace("transactionalId", "TRANSACTIONAL_ID").upper(),
            acl["resource"]["name"],
            operation.upper(),
            prefix=acl["resource"]["patternType"] == "prefix",
        )
        for acl in user["spec"]["authorization"]["acls"]
        for operation in acl["operations"]
    }


def test_the_service_logs_in_as_its_user_at_the_cluster_of_the_topics() -> None:
    (cluster,) = {resource["metadata"]["labels"]["strimzi.io/cluster"] for resource in [*TOPICS, *USERS]}
    pod = read_document("pod/statefulset.yaml")["spec"]["template"]["spec"]
    secrets = {variable["valueFrom"]["secretKeyRef"]["name"] for variable in pod["containers"][0]["env"]}
    (authority,) = [volume["secret"]["secretName"] for volume in pod["volumes"] if volume["name"] == "kafka-ca"]
    (user,) = [user for user in USERS if user["metadata"]["name"] == CONFIG.kafka.options["sasl.username"]]

    # Strimzi names the Service of the brokers and the Secrets like this.
    assert CONFIG.kafka.bootstrap_servers == f"{cluster}-kafka-bootstrap:9093"
    assert authority == f"{cluster}-cluster-ca-cert"
    assert user["metadata"]["name"] in secrets
    assert user["spec"]["authentication"]["type"] == CONFIG.kafka.options["sasl.mechanism"].lower()
