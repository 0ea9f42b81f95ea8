"""The record says which image the pods ran, by its digest."""

from __future__ import annotations

from pathlib import Path

from adapters.katib.fake_cluster import FakeCluster
from adapters.katib.followed_run import follower_of
from adapters.katib.katib_objects import container, pod, trial
from builders.katib_specs import spec_of
from builders.specs import make_context
from tuneoff.base.space import Float, SearchSpace
from tuneoff_adapters.kubernetes.resources import PODS, TRIALS
from tuneoff_adapters.kubernetes.status import COLLECTOR, image_id_of

DIGEST = "registry.example/tuneoff@sha256:" + "a" * 64
LATER = "registry.example/tuneoff@sha256:" + "b" * 64


def with_image(image: str, name: str = "training-container") -> dict[str, object]:
    return {**container(name, running={}), "imageID": image}


def test_the_image_of_a_container_is_known_once_the_node_says_so() -> None:
    found = pod("aaaaaaaa", "Running", with_image("c@sha256:0", COLLECTOR), with_image(DIGEST))
    assert image_id_of(found, "training-container") == DIGEST
    assert image_id_of(pod("aaaaaaaa", "Pending", container(waiting={})), "training-container") is None
    assert image_id_of(pod("aaaaaaaa", "Pending", with_image("")), "training-container") is None
    assert image_id_of({}, "training-container") is None


def test_every_image_that_trials_ran_is_told_once(tmp_path: Path) -> None:
    spec = spec_of(options={"image": "i"}, search_space=SearchSpace({"x": Float(low=0.0, high=1.0)}))
    context = make_context(spec, tmp_path)
    follower = follower_of(context, FakeCluster())
    for suffix, image in (("aaaaaaaa", LATER), ("bbbbbbbb", DIGEST), ("cccccccc", DIGEST)):
        follower.take_seen(TRIALS, "ADDED", trial(suffix, values={"x": "0.5"}), 1)
        follower.take_seen(PODS, "ADDED", pod(suffix, "Running", with_image(image)), 1)
    follower.take_seen(PODS, "ADDED", pod("dddddddd", "Running", with_image("another")), 1)  # of no trial
    assert follower.image_digests() == [DIGEST, LATER]
    follower.stop(0.0)
