from __future__ import annotations

from apis.guarded import Guarded

from heirlog.node.audit import AuditLog
from heirlog.node.request_dispatcher import RequestDispatcher


def test_what_waits_for_metadata_can_leave() -> None:
    node = Guarded().node
    requests, called = (
        RequestDispatcher(node, node.every_broker, AuditLog(node.env.log, node.env.now_ms, node.env.call_later)),
        list[int](),
    )
    leave = requests.when_it_serves(lambda: called.append(1))
    requests.when_it_serves(lambda: called.append(2))
    leave()
    leave()
    assert requests.held_count == 1
    requests.caught_up()
    assert called == [2]
