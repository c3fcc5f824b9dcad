"""States as the records that recreate them: what a snapshot is written from, and a new partition is logged as."""

from __future__ import annotations

from heirlog.metadata.acl_messages import entry_members, pattern_members
from heirlog.metadata.acls import Acl
from heirlog.metadata.basis import ElectionBasis
from heirlog.metadata.client_quotas import Entity
from heirlog.metadata.delegation_tokens import DelegationToken
from heirlog.metadata.state import BrokerRegistration, ControllerRegistration, PartitionRegistration, ScramKey
from heirlog.protocol.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UserScramCredentialRecord,
)
from heirlog.protocol.types import Uuid
from heirlog.security.scram import ScramCredential


def broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    """The registration record that recreates `broker`, its fencing and shutdown flags included."""
    return RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=listener.name,
                host=listener.endpoint.host,
                port=listener.endpoint.port,
                security_protocol=listener.security_protocol,
            )
            for listener in broker.listeners
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=feature.name,
                min_supported_version=feature.min_version,
                max_supported_version=feature.max_version,
            )
            for feature in broker.features
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
        clean_stop_epoch=broker.clean_stop_epoch,
    )


def partition_record(topic_id: Uuid, partition: int, state: PartitionRegistration) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=list(state.replicas),
        isr=list(state.isr),
        removing_replicas=list(state.removing),
        adding_replicas=list(state.adding),
        leader=state.leader,
        leader_recovery_state=state.leader_recovery_state,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=list(state.directories),
        # null and empty mean the same to a reader; null is what Kafka writes and costs no bytes
        eligible_leader_replicas=list(state.elr) or None,
        last_known_elr=list(state.last_known_elr) or None,
        election_basis=None if state.basis is None else _basis_in_snapshot(state.basis),
        earlier_elections=[_basis_in_snapshot(basis) for basis in state.earlier] or None,
        last_leader=state.last_leader,
    )


def _basis_in_snapshot(basis: ElectionBasis) -> PartitionRecord.ElectionBasis:
    return PartitionRecord.ElectionBasis(
        basis=basis.basis.number,
        leader=basis.leader,
        leader_epoch=basis.leader_epoch,
        end_offset=basis.end_offset,
        controller_epoch=basis.controller_epoch,
        timestamp_ms=basis.timestamp_ms,
        replicas=[
            PartitionRecord.ReplicaAnswer(
                broker_id=answer.broker,
                broker_epoch=answer.broker_epoch,
                last_written_leader_epoch=answer.last_written_epoch,
                log_end_offset=answer.end_offset,
                may_lack_records=answer.may_lack_records,
            )
            for answer in basis.replicas
        ],
    )


def acl_record(acl_id: Uuid, acl: Acl) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(id=acl_id, **pattern_members(acl), **entry_members(acl))


def scram_record(key: ScramKey, credential: ScramCredential) -> UserScramCredentialRecord:
    user, mechanism = key
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def delegation_token_record(token: DelegationToken) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issued_ms,
        max_timestamp=token.max_ms,
        expiration_timestamp=token.expires_ms,
        token_id=token.id,
    )


def client_quota_record(entity: Entity, key: str, value: float | None) -> ClientQuotaRecord:
    """value: None removes the quota."""
    return ClientQuotaRecord(
        entity=[ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        key=key,
        value=0.0 if value is None else value,
        remove=value is None,
    )


def controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=listener.name,
                host=listener.endpoint.host,
                port=listener.endpoint.port,
                security_protocol=listener.security_protocol,
            )
            for listener in controller.listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=feature.name,
                min_supported_version=feature.min_version,
                max_supported_version=feature.max_version,
            )
            for feature in controller.features
        ],
    )
