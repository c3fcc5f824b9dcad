"""The least that a broker in Python can do for librdkafka: one loop around the system calls that none can leave out.

A Produce is received, its CRC computed, its offset written, the batch appended, sent to the followers and answered. A
Fetch is answered by sendfile. There are no checks, no state but a file for each partition, no limits, no timers, no
metrics, and a request is read at fixed places. What such a broker costs is what Python and the system cost; the rest of
a node's cost is its own work. `benchmarks/bounds.py` puts loads on three of them.

    client   --Produce-->  leader: recv, CRC, pwrite  --batch-->  followers: recv, pwrite  --next position-->  leader
    client   <--answer---  leader, once both followers have asked for what comes after it

Followers speak a protocol of their own: a name and a position, and a name, a position and bytes.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from heirlog.protocol.batch import read_header
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.frames import decode_request, encode_response, parse_header
from heirlog.protocol.messages import ApiVersionsResponse, MetadataRequest, MetadataResponse
from heirlog.protocol.primitives import Message
from heirlog.server.allocator import keep_freed_memory

PRODUCE, FETCH, METADATA, API_VERSIONS, FOLLOW = 0, 1, 3, 18, -1
VERSIONS = {PRODUCE: (3, 7), FETCH: (4, 11), METADATA: (0, 12), API_VERSIONS: (0, 3)}
HOST = "127.0.0.1"
STAGING = memoryview(bytearray(64 * 1024))
BEHIND = STAGING[: 4 * 1024]
MOST = 1 << 20
NAME_SIZE = 32
_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hhih")
_FOLLOW = struct.Struct(f">ih{NAME_SIZE}sq")
_FOLLOWED = struct.Struct(f">i{NAME_SIZE}sq")
_PRODUCED = struct.Struct(">iihqqqi")
_FETCH = struct.Struct(">iiqqi")
_FETCH_HEAD = struct.Struct(">iihii")
_FETCHED = struct.Struct(">iihqqqiii")
_OFFSET = struct.Struct(">q")
_CRC_START = 21


class Log:
    def __init__(self, name: bytes, folder: Path) -> None:
        self.name = name
        folder.mkdir(parents=True, exist_ok=True)
        self.fd = os.open(folder / "0.log", os.O_RDWR | os.O_CREAT)
        self.end = self.next_offset = 0
        self.positions: dict[int, int] = {}
        self.recent: memoryview = memoryview(b"")
        self.recent_at = 0

    def append(self, batch: memoryview) -> int:
        """A leader's; returns the first offset."""
        header = read_header(batch)
        assert crc32c(batch[_CRC_START:]) == header.crc, "the client does not send anything else"
        base_offset = self.next_offset
        _OFFSET.pack_into(batch, 0, base_offset)
        self.positions[base_offset] = self.end
        os.pwrite(self.fd, batch, self.end)
        self.recent, self.recent_at = batch, self.end
        self.end += len(batch)
        self.next_offset += header.last_offset_delta + 1
        return base_offset


class Connection:
    def __init__(self, broker: BareBroker, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.broker = broker
        self.sock = sock
        self.head = b""
        self.frame: bytearray | None = None
        self.filled = 0
        self.out: deque[memoryview | tuple[int, int, int]] = deque()

    def readable(self) -> None:
        try:
            if self.frame is None:
                self._cut(STAGING[: self._count(self.sock.recv_into(STAGING))])
                return
            rest = memoryview(self.frame)[self.filled :]
            count = self._count(self.sock.recvmsg_into((rest, BEHIND))[0])
        except BlockingIOError:
            return
        if count < len(rest):
            self.filled += count
            return
        frame, self.frame = self.frame, None
        self.broker.handle(self, memoryview(frame))
        self._cut(BEHIND[: count - len(rest)])

    def _count(self, count: int) -> int:
        if not count:
            self.broker.forget(self)
        return count

    def _cut(self, data: memoryview) -> None:
        if self.head:
            data = memoryview(self.head + data)
        at = 0
        while len(data) - at >= 4:
            end = at + 4 + _SIZE.unpack_from(data, at)[0]
            if end > len(data):
                self.frame = bytearray(end - at - 4)
                self.filled = len(data) - at - 4
                self.frame[: self.filled] = data[at + 4 :]
                at = len(data)
                break
            self.broker.handle(self, memoryview(bytearray(data[at + 4 : end])))
            at = end
        self.head = bytes(data[at:])

    def send(self, *parts: bytes | memoryview | tuple[int, int, int]) -> None:
        """A part of a file is its descriptor, position and size."""
        self.out.extend(part if isinstance(part, tuple) else memoryview(part) for part in parts)
        self.writable()

    def writable(self) -> None:
        try:
            while self.out:
                first = self.out[0]
                if isinstance(first, tuple):
                    fd, position, size = first
                    sent = os.sendfile(self.sock.fileno(), fd, position, size)
                    rest: memoryview | tuple[int, int, int] = (fd, position + sent, size - sent)
                    is_sent = sent == size
                else:
                    more = socket.MSG_MORE if len(self.out) > 1 else 0
                    sent = self.sock.send(first, more)
                    rest, is_sent = first[sent:], sent == len(first)
                if is_sent:
                    self.out.popleft()
                else:
                    self.out[0] = rest
        except BlockingIOError:
            self.broker.watch(self, select.EPOLLIN | select.EPOLLOUT)


class BareBroker:
    """One of several; partition N of each topic is led by broker N."""

    def __init__(self, node: int, listeners: Sequence[socket.socket], data: Path, followers: int) -> None:
        """listeners: of all brokers, this one's at `node`. followers: of each partition."""
        self.node = node
        self.ports = [listener.getsockname()[1] for listener in listeners]
        self.data = data / f"broker-{node}"
        self.followers = followers
        self.epoll = select.epoll()
        self.connections: dict[int, Connection] = {}
        self.listener = listeners[node]
        self.logs: dict[bytes, Log] = {}
        self.copies: dict[tuple[Connection, bytes], Log] = {}
        self.current: Log | None = None
        self.waiting: dict[Connection, int] = {}
        self.fetched: dict[Connection, int] = {}
        self.unanswered: deque[tuple[int, Connection, bytes]] = deque()
        self.leaders: set[Connection] = set()

    def run(self) -> None:
        keep_freed_memory()
        self.epoll.register(self.listener, select.EPOLLIN)
        if self.followers:
            for port in self.ports[: self.node] + self.ports[self.node + 1 :]:
                leader = self._add(socket.create_connection((HOST, port)))
                self.leaders.add(leader)
                leader.send(_FOLLOW.pack(_FOLLOW.size - 4, FOLLOW, b"", 0))
        while True:
            for fd, events in self.epoll.poll():
                if fd == self.listener.fileno():
                    self._add(self.listener.accept()[0])
                    continue
                connection = self.connections[fd]
                if events & select.EPOLLOUT:
                    self.watch(connection, select.EPOLLIN)
                    connection.writable()
                if events & ~select.EPOLLOUT:
                    connection.readable()

    def _add(self, sock: socket.socket) -> Connection:
        connection = self.connections[sock.fileno()] = Connection(self, sock)
        self.epoll.register(sock, select.EPOLLIN)
        return connection

    def watch(self, connection: Connection, events: int) -> None:
        self.epoll.modify(connection.sock, events)

    def forget(self, connection: Connection) -> None:
        self.epoll.unregister(connection.sock)
        del self.connections[connection.sock.fileno()]
        connection.sock.close()

    def handle(self, connection: Connection, frame: memoryview) -> None:
        if connection in self.leaders:
            self._copy(connection, frame)
            return
        key = int.from_bytes(frame[:2], "big", signed=True)
        if key == PRODUCE:
            self._produce(connection, frame)
        elif key == FETCH:
            self._fetch(connection, frame)
        elif key == FOLLOW:
            self._follow(connection, frame)
        else:
            header, position = parse_header(frame)
            request = decode_request(header, frame, position)
            answer = self._metadata(request) if isinstance(request, MetadataRequest) else _versions()
            parts = encode_response(key, header.api_version, header.correlation_id, answer)
            connection.send(*(part for part in parts if isinstance(part, bytes)))

    def _metadata(self, request: MetadataRequest) -> Message:
        nested = MetadataResponse
        nodes = range(len(self.ports))
        return nested(
            brokers=[nested.MetadataResponseBroker(node_id=n, host=HOST, port=self.ports[n]) for n in nodes],
            topics=[
                nested.MetadataResponseTopic(
                    name=topic.name,
                    partitions=[
                        nested.MetadataResponsePartition(
                            partition_index=n, leader_id=n, replica_nodes=[n], isr_nodes=[n]
                        )
                        for n in nodes
                    ],
                )
                for topic in request.topics or ()
            ],
        )

    def _produce(self, connection: Connection, frame: memoryview) -> None:
        """Version 7 of one batch: it is at the end."""
        _, _, correlation_id, client_size = _HEAD.unpack_from(frame)
        at = _HEAD.size + client_size + 12  # transactional id, acks, timeout, number of topics
        topic_size = int.from_bytes(frame[at : at + 2], "big")
        topic = bytes(frame[at + 2 : at + 2 + topic_size])
        log = self.logs.get(topic) or self._lead(topic)
        base_offset = log.append(frame[at + 2 + topic_size + 12 :])
        answered = _PRODUCED.pack(1, self.node, 0, base_offset, -1, 0, 0)
        body = b"".join((_SIZE.pack(correlation_id), b"\0\0\0\1", frame[at : at + 2 + topic_size], answered))
        answer = _SIZE.pack(len(body)) + body
        if not self.followers:
            connection.send(answer)
            return
        self.unanswered.append((log.end, connection, answer))
        waiting, self.waiting = self.waiting, {}
        for follower, position in waiting.items():
            self._send_to(follower, log, position)

    def _lead(self, topic: bytes) -> Log:
        log = self.logs[topic] = self.current = Log(topic, self.data / f"{topic.decode()}-{self.node}")
        self.waiting = dict.fromkeys(self.waiting, 0)
        self.fetched = dict.fromkeys(self.fetched, 0)
        return log

    def _send_to(self, follower: Connection, log: Log, position: int) -> None:
        size = min(MOST, log.end - position)
        head = _FOLLOWED.pack(_FOLLOWED.size - 4 + size, log.name.ljust(NAME_SIZE, b"\0"), position)
        if position == log.recent_at and size == len(log.recent):
            follower.send(head, log.recent)
        else:
            follower.send(head, (log.fd, position, size))

    def _follow(self, follower: Connection, frame: memoryview) -> None:
        _, name, position = _FOLLOW.unpack_from(b"\0\0\0\0" + frame)[1:]
        log = self.current
        if log is None or name.rstrip(b"\0") != log.name:
            position = 0
        self.fetched[follower] = position
        if log is None or position == log.end:
            self.waiting[follower] = position
        else:
            self._send_to(follower, log, position)
        if len(self.fetched) < self.followers:
            return
        replicated = min(self.fetched.values())
        while self.unanswered and self.unanswered[0][0] <= replicated:
            _, connection, answer = self.unanswered.popleft()
            connection.send(answer)

    def _copy(self, leader: Connection, frame: memoryview) -> None:
        name, position = _FOLLOWED.unpack_from(b"\0\0\0\0" + bytes(frame[: _FOLLOWED.size - 4]))[1:]
        copy = self.copies.get((leader, name))
        if copy is None:
            number = next(n for n, port in enumerate(self.ports) if port == leader.sock.getpeername()[1])
            copy = self.copies[leader, name] = Log(name, self.data / f"{name.rstrip(bytes(1)).decode()}-{number}")
        data = frame[_FOLLOWED.size - 4 :]
        os.pwrite(copy.fd, data, position)
        leader.send(_FOLLOW.pack(_FOLLOW.size - 4, FOLLOW, name, position + len(data)))

    def _fetch(self, connection: Connection, frame: memoryview) -> None:
        """Version 11 of one partition."""
        _, _, correlation_id, client_size = _HEAD.unpack_from(frame)
        at = _HEAD.size + client_size + 29  # replica, waits and limits, session, number of topics
        topic_size = int.from_bytes(frame[at : at + 2], "big")
        topic = bytes(frame[at : at + 2 + topic_size])
        log = self.logs[topic[2:]]
        _, _, offset, _, most = _FETCH.unpack_from(frame, at + 2 + topic_size + 4)
        position = log.positions.get(offset)
        if position is None:
            return  # the end: the client waits in vain
        size = min(most, log.end - position)
        body = b"".join(
            (
                _FETCH_HEAD.pack(correlation_id, 0, 0, 0, 1),
                topic,
                _FETCHED.pack(1, self.node, 0, log.next_offset, log.next_offset, 0, -1, -1, size),
            )
        )
        connection.send(_SIZE.pack(len(body) + size) + body, (log.fd, position, size))


def _versions() -> Message:
    nested = ApiVersionsResponse
    return nested(
        api_keys=[
            nested.ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in VERSIONS.items()
        ]
    )
