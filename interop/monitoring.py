"""The alert rules and the dashboard of packaging/monitoring, in Prometheus itself.

    promtool             reads the rules and the example configuration
    drills, scraped      three failures on real clusters: every alert that they cause must fire, and must not before
    causes               one of each other alert (`alert_causes`): it must fire, not before, and not afterwards
    dashboard            every query of it finds something in a cluster that runs

Durations (`for: 5m`) are left out, so that a failure of a few seconds is enough.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import alert_causes
import debian
import jars

from heirlog.drill import unclean_recovery
from heirlog.testing import Cluster
from heirlog.testing.apache_kafka import free_ports

PACKAGING = jars.HERE.parent / "packaging" / "monitoring"
INSTALL = "Prometheus (on Debian: apt install prometheus)"
METRICS = "heirlog.metrics.listener"
SCRAPE = "200ms"
WAIT_S = 30.0
DOWN = {"HeirlogNodeDown", "HeirlogBrokerFenced", "HeirlogOfflinePartitions", "HeirlogUnderReplicated"}
DRILLS = (
    # scenario, with the recovery manager, the alerts that it must cause
    ("U16", True, DOWN | {"HeirlogUncleanElection", "HeirlogElectionByOperatorNeeded", "HeirlogRecordsGivenUp"}),
    ("U2", True, DOWN | {"HeirlogRecoveryWaits"}),
    ("U11", False, DOWN | {"HeirlogUncleanElection", "HeirlogRecordsPossiblyGivenUp"}),
)
NO_CONTROLLER = "HeirlogNoActiveController"
UNDER_MIN_ISR = "HeirlogUnderMinIsr"
"""These two are seen when the drill is over, where they last."""


def check() -> str:
    """For `make interop`. Raises AssertionError, jars.Missing."""
    programs = _programs()
    for kind, name in (("rules", "alerts.yml"), ("config", "prometheus.yml")):
        done = subprocess.run([programs / "promtool", "check", kind, PACKAGING / name], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    rules = re.findall(r"- alert: (\w+)", (PACKAGING / "alerts.yml").read_text())
    provoked = {NO_CONTROLLER, UNDER_MIN_ISR, *alert_causes.CAUSES}.union(*(alerts for _, _, alerts in DRILLS))
    assert provoked == set(rules), sorted(provoked ^ set(rules))
    _causes(programs)
    queries = 0
    for scenario, manager, alerts in DRILLS:
        config = {**unclean_recovery.config(manager=manager), METRICS: "127.0.0.1:0"}
        with Cluster(nodes=3, config=config) as cluster, _prometheus(programs, cluster) as prometheus:
            prometheus.wait_for("count(up == 1) == 4", "every node to be scraped")
            prometheus.wait_for("absent(ALERTS)", "no alert before anything fails")
            verdict, _ = unclean_recovery.run(cluster, scenario, manager=manager, say=lambda _: prometheus.targets())
            prometheus.wait_for("count(up == 1) == 4", "every node to be scraped again")
            missing = alerts - prometheus.fired()
            assert not missing, f"{scenario}: {sorted(missing)} did not fire: {verdict.as_json()}"
            queries = queries or prometheus.answer_dashboard()
            assert not prometheus.query(f'ALERTS{{alertname="{NO_CONTROLLER}"}}')
            for broker in (2, 3):
                cluster.kill(broker)
            prometheus.wait_for(f'ALERTS{{alertname="{UNDER_MIN_ISR}",alertstate="firing"}}', UNDER_MIN_ISR)
            cluster.kill(cluster.controllers[0])
            prometheus.wait_for(f'ALERTS{{alertname="{NO_CONTROLLER}",alertstate="firing"}}', NO_CONTROLLER)
    return f"all {len(rules)} alerts fired, {queries} queries of the dashboard answered"


def _causes(programs: Path) -> None:
    with alert_causes.running() as cluster, _prometheus(programs, cluster) as prometheus:
        prometheus.wait_for("count(up == 1) == 4", "every node to be scraped")
        for alert, cause in alert_causes.CAUSES.items():
            alerts = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
            prometheus.wait_for(f"absent({alerts})", f"no {alert} before its cause")
            with cause(cluster):
                prometheus.wait_for(alerts, alert)
            cluster.wait_until_ready()
            prometheus.wait_for(f"absent({alerts}) and on() count(up == 1) == 4", f"the end of {alert}")


def _programs() -> Path:
    for name in ("prometheus", "promtool"):
        if shutil.which(name) is None:
            return debian.unpacked("prometheus", INSTALL) / "usr" / "bin"
    return Path(str(shutil.which("prometheus"))).parent


class Prometheus:
    """One that scrapes a cluster. folder: of its configuration."""

    def __init__(self, cluster: Cluster, folder: Path, port: int) -> None:
        self._cluster = cluster
        self._folder = folder
        self._url = f"http://127.0.0.1:{port}"
        text = (PACKAGING / "alerts.yml").read_text()
        (folder / "alerts.yml").write_text(re.sub(r"\n +for: \w+", "", text))
        config = (
            f"global: {{scrape_interval: {SCRAPE}, scrape_timeout: {SCRAPE}, evaluation_interval: {SCRAPE}}}\n"
            "rule_files: [alerts.yml]\n"
            "scrape_configs: [{job_name: heirlog, file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]}]\n"
        )
        (folder / "prometheus.yml").write_text(config)
        self._found: list[str] = []
        self.targets()

    def targets(self) -> None:
        """Where the nodes were last seen: a node that is down is still one of them."""
        found = []
        for node in self._cluster.node_ids:
            said = [line for line in self._cluster.output(node).splitlines() if '"metrics-listening"' in line]
            found.append(f"127.0.0.1:{json.loads(said[-1])['port']}")
        if found != self._found:
            self._found = found
            path = self._folder / "new.json"
            path.write_text(json.dumps([{"targets": found}]))
            path.rename(self._folder / "targets.json")

    def query(self, expression: str, over: str = "query", times: str = "") -> list[dict[str, object]]:
        with urlopen(f"{self._url}/api/v1/{over}?query={quote(expression)}{times}", timeout=10) as answer:
            found: list[dict[str, object]] = json.load(answer)["data"]["result"]
            return found

    def wait_for(self, expression: str, what: str) -> None:
        """Until the query finds something. Raises AssertionError."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            self.targets()  # a node that starts again says later where it is
            try:
                if self.query(expression):
                    return
            except URLError:
                pass  # it is still starting
            time.sleep(0.1)
        raise AssertionError(f"waited {WAIT_S:g} s for {what}: {self.query('up')} {self.query('ALERTS')}")

    def fired(self) -> set[str]:
        found = self.query('max by (alertname) (max_over_time(ALERTS{alertstate="firing"}[1h]))')
        return {str(one["metric"]["alertname"]) for one in found}  # type: ignore[index]

    def answer_dashboard(self) -> int:
        """How many queries there are. Raises AssertionError for one that finds nothing."""
        dashboard = json.loads((PACKAGING / "grafana-dashboard.json").read_text())
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
        for expression in expressions:
            meant = expression.replace("$job", "heirlog").replace("$__rate_interval", "1m")
            deadline = time.monotonic() + WAIT_S
            while not self._drawn(meant):
                assert time.monotonic() < deadline, f"the dashboard's query finds nothing: {expression}"
                time.sleep(0.2)
        return len(expressions)

    def _drawn(self, expression: str) -> bool:
        """In the last minute: after a restart a node does not show requests that it has not seen yet."""
        now = time.time()
        return bool(self.query(expression, "query_range", f"&start={now - 60:.3f}&end={now:.3f}&step=1"))


@contextmanager
def _prometheus(programs: Path, cluster: Cluster) -> Iterator[Prometheus]:
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        prometheus = Prometheus(cluster, Path(folder), port)
        command = [programs / "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
            try:
                yield prometheus
            finally:
                process.kill()
                process.wait()
