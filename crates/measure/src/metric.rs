//! The table of everything that is counted.
//!
//! A row gives the variant, its label if it has one, counter or gauge, the Prometheus name, the
//! unit, and above it the help paragraph, which is also the variant's documentation. Adding a
//! counter is adding a row.

use crate::label::{
    Aborted, AcmeOrderEnd, ContentLoadEnd, DiskLookupEnd, DiskRefusal, DnsOutcome, HandOffRefusal,
    HopOutcome, Http2End, Http2Reset, HttpVersion, Joined, Label, LoginOutcome, Lost, ModuleFault,
    ModuleRequestEnd, NextHopHttp2End, NotStored, OpenReason, PeerRefusal, ProxyHeaderEnd,
    ReloadOutcome, RequestPhase, Reuse, RouteChoice, RuleDeviation, StatusClass, Supply,
    TlsHandshakeEnd, Unrecorded, Verdict, WaitEnd, WaitReason,
};

/// Whether a number only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Grows from the start of the process; its Prometheus name ends in `_total`.
    Counter,
    /// Goes up and down. Workers may add on one thread and subtract on another: only the sum has a
    /// meaning.
    Gauge,
}

/// The label of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelSet {
    /// Label name.
    pub name: &'static str,
    /// Its values, one slot each.
    pub words: &'static [&'static str],
    /// What each value means.
    pub about: &'static [&'static str],
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Prometheus name, complete.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// What is counted: `bytes`, or a plural noun.
    pub unit: &'static str,
    /// Explanation, one paragraph, without line breaks.
    pub help: &'static str,
    /// The label, if the family is divided.
    pub label: Option<LabelSet>,
    /// First slot in a block of numbers.
    pub offset: usize,
    /// Number of slots: 1, or one for each word of the label.
    pub width: usize,
}

macro_rules! table {
    ($(
        #[doc = $first:literal] $( #[doc = $more:literal] )*
        $variant:ident $( ($field:ident : $label:ident) )?, $kind:ident, $name:literal, $unit:literal;
    )+) => {
        /// One number of a block: a row of the table, with the label's value where the row has one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Metric {
            $(
                #[doc = $first] $( #[doc = $more] )*
                #[doc = concat!("\n\n`", $name, "`, ", $unit, ".")]
                $variant $( ($label) )?,
            )+
        }

        enum Row { $( $variant, )+ }

        const WIDTHS: &[usize] = &[$( 1 $( * $label::COUNT )?, )+];

        impl Metric {
            /// Every family in the order of declaration.
            pub const FAMILIES: &'static [Family] = &[$(
                Family {
                    name: $name,
                    kind: Kind::$kind,
                    unit: $unit,
                    help: concat!($first $(, $more )*),
                    label: label_set!($( $field $label )?),
                    offset: offset(Row::$variant as usize),
                    width: WIDTHS[Row::$variant as usize],
                },
            )+];

            /// Place of this number in a block, below [`SLOTS`].
            #[inline]
            #[must_use]
            pub fn slot(self) -> usize {
                match self {
                    $( Self::$variant $( ($field) )? =>
                        (const { offset(Row::$variant as usize) }) $( + $field.index() )?, )+
                }
            }

            /// The row this number belongs to.
            #[must_use]
            pub const fn family(self) -> &'static Family {
                match self {
                    $( Self::$variant $( ($field) )? => { $( let _: $label = $field; )? &Self::FAMILIES[Row::$variant as usize] } )+
                }
            }
        }
    };
}

macro_rules! label_set {
    () => {
        None
    };
    ($field:ident $label:ident) => {
        Some(LabelSet {
            name: stringify!($field),
            words: <$label as Label>::WORDS,
            about: <$label as Label>::ABOUT,
        })
    };
}

/// Number of slots in a block.
pub const SLOTS: usize = offset(WIDTHS.len());

const fn offset(row: usize) -> usize {
    let mut sum = 0;
    let mut place = 0;
    while place < row {
        sum += WIDTHS[place];
        place += 1;
    }
    sum
}

table! {
    // --- clients ---------------------------------------------------------------------------------
    /// Client connections accepted.
    ClientsAccepted, Counter, "weir_client_connections_accepted_total", "connections";
    /// Client connections closed right after accept, because a rule or the limit on clients said
    /// so.
    ClientsRefused, Counter, "weir_client_connections_refused_total", "connections";
    /// Client connections open now, idle ones and tunnels included.
    ClientsOpen, Gauge, "weir_client_connections_open", "connections";
    /// Most client connections open at once since the start.
    ClientsOpenMost, Gauge, "weir_client_connections_open_max", "connections";
    /// TLS handshakes with clients, by how they ended; those of connections that carry requests
    /// then are `full` and `resumed`.
    TlsHandshakes(end: TlsHandshakeEnd), Counter, "weir_tls_handshakes_total", "handshakes";
    /// Orders of certificates (ACME), by how they ended.
    AcmeOrders(end: AcmeOrderEnd), Counter, "weir_acme_orders_total", "orders";
    /// Client connections that HTTP/2 was spoken on, by why they ended.
    Http2Connections(end: Http2End), Counter, "weir_http2_connections_total", "connections";
    /// Streams of HTTP/2 that this side has reset, by the cause.
    Http2Resets(cause: Http2Reset), Counter, "weir_http2_resets_total", "streams";
    /// Requests of HTTP/2 whose streams were reset before anything was done for them: they are in
    /// no other counter, and not in the access log.
    Http2AbandonedRequests, Counter, "weir_http2_abandoned_requests_total", "requests";
    /// Headers by which balancers say whose connections they hand on, by what became of them; those
    /// of connections that carry requests then are `client` and `own`.
    ProxyHeaders(end: ProxyHeaderEnd), Counter, "weir_proxy_headers_total", "headers";
    /// Requests that were the first on their client connection: as many connections carried any
    /// request at all.
    FirstRequests, Counter, "weir_client_first_requests_total", "requests";
    /// Next hops that client connections had requests forwarded to, each counted once a connection.
    ClientNextHops, Counter, "weir_client_connection_next_hops_total", "next hops";
    /// Times that accepting paused because the process was out of file descriptors.
    AcceptPauses, Counter, "weir_accept_pauses_total", "pauses";
    /// Bytes read from clients, heads and framing included, tunnels excluded.
    BytesFromClients, Counter, "weir_client_received_bytes_total", "bytes";
    /// Bytes written to clients, heads and framing included, tunnels excluded.
    BytesToClients, Counter, "weir_client_sent_bytes_total", "bytes";

    // --- requests --------------------------------------------------------------------------------
    /// Requests finished, by the word of the verdict: the same word as in the access log.
    Requests(verdict: Verdict), Counter, "weir_requests_total", "requests";
    /// The same requests, by the version of HTTP that they have come by.
    RequestVersions(version: HttpVersion), Counter,
        "weir_requests_by_version_total", "requests";
    /// Requests that reached a phase; a request may skip phases. Those answered at once are counted
    /// when their response is made.
    PhaseReached(phase: RequestPhase), Counter, "weir_phase_reached_total", "requests";
    /// Requests between their first byte and the end of their response.
    RequestsInFlight, Gauge, "weir_requests_in_flight", "requests";
    /// Final responses sent to clients, by class of status.
    Responses(class: StatusClass), Counter, "weir_responses_total", "responses";
    /// Requests or responses that the client cut short.
    ClientAborts, Counter, "weir_client_aborts_total", "requests";
    /// Panics caught: each ended one connection and nothing else. Any is a bug.
    Panics, Counter, "weir_panics_total", "panics";

    // --- the cache -------------------------------------------------------------------------------
    /// Body bytes of responses that came from the store; divided by all body bytes this is the byte
    /// hit ratio.
    BytesFromStore, Counter, "weir_store_sent_bytes_total", "bytes";
    /// Body bytes of responses sent to clients, from wherever they came.
    BodyBytesToClients, Counter, "weir_client_sent_body_bytes_total", "bytes";
    /// Responses stored, whether new or in place of an older one.
    Stored, Counter, "weir_stored_total", "responses";
    /// Forwarded responses not stored, by reason.
    ResponsesNotStored(reason: NotStored), Counter, "weir_not_stored_total", "responses";
    /// Parts of responses stored: of those that were cut or given up, and those that were requested
    /// as parts.
    PartsStored, Counter, "weir_parts_stored_total", "responses";
    /// Stored responses freshened by a 304 (RFC 9111 section 4.3.4).
    Freshened, Counter, "weir_freshened_total", "responses";
    /// Requests answered with a stale stored response (RFC 5861, or max-stale).
    ServedStale, Counter, "weir_served_stale_total", "requests";
    /// Body bytes of the answers that we make ourselves: refusals and errors.
    BodyBytesOfOurs, Counter, "weir_own_sent_body_bytes_total", "bytes";
    /// Requests answered by the response to another one's, by how they came to share it.
    Joined(how: Joined), Counter, "weir_joined_total", "requests";
    /// Stored responses invalidated by an unsafe method (RFC 9111 section 4.4).
    Invalidated, Counter, "weir_invalidated_total", "responses";
    /// Stored responses purged by the operator.
    Purged, Counter, "weir_purged_total", "responses";
    /// Stored responses evicted for room.
    Evicted, Counter, "weir_evicted_total", "responses";
    /// Bytes the store uses: bodies, heads, index and allocator overhead.
    StoreUsedBytes, Gauge, "weir_store_used_bytes", "bytes";
    /// Bytes of them of responses that were evicted or refused, and are still being sent.
    StoreLingeringBytes, Gauge, "weir_store_lingering_bytes", "bytes";
    /// Bytes of them of content in a file in memory, which is sent without a copy.
    StoreFileBytes, Gauge, "weir_store_file_bytes", "bytes";
    /// Bytes the store may use.
    StoreBudgetBytes, Gauge, "weir_store_budget_bytes", "bytes";
    /// Stored responses.
    StoreEntries, Gauge, "weir_store_entries", "responses";

    // --- the disk tier ---------------------------------------------------------------------------
    /// Requests answered from the store where the response, or its content, came from disk. They
    /// are among those with the verdict hit.
    DiskHits, Counter, "weir_disk_hits_total", "requests";
    /// Look-ups on disk for what memory had not, by what came of them.
    DiskLookups(outcome: DiskLookupEnd), Counter, "weir_disk_lookups_total", "look-ups";
    /// Requests for content on disk that was to be loaded into memory, as it is requested often, by
    /// what came of that.
    ContentLoads(outcome: ContentLoadEnd), Counter, "weir_disk_content_loads_total", "requests";
    /// Responses whose rest was not here any more while a client was being sent them, and was
    /// fetched for that client alone, by why it was not.
    Continued(reason: Lost), Counter, "weir_continued_responses_total", "responses";
    /// Responses cut because the rest could not be read from disk, and could not be fetched either.
    StoreCuts, Counter, "weir_disk_cut_responses_total", "responses";
    /// Purges and invalidations that might not survive a crash, because the disk failed.
    PurgesNotDurable, Counter, "weir_disk_purges_not_durable_total", "purges";

    /// Stored responses on disk.
    DiskEntries, Gauge, "weir_disk_entries", "responses";
    /// Bytes of the store's files on disk.
    DiskUsedBytes, Gauge, "weir_disk_used_bytes", "bytes";
    /// Bytes that the store's files may take.
    DiskBudgetBytes, Gauge, "weir_disk_budget_bytes", "bytes";
    /// Bytes of memory that the index of the disk tier takes, its slack counted.
    DiskIndexBytes, Gauge, "weir_disk_index_bytes", "bytes";
    /// Segments: files of stored responses.
    DiskSegments, Gauge, "weir_disk_segments", "segments";
    /// Bytes that wait to be written to disk.
    DiskQueuedBytes, Gauge, "weir_disk_queued_bytes", "bytes";
    /// Directories whose index is still being read: until then some of what is stored is not found.
    DiskLoading, Gauge, "weir_disk_loading", "directories";
    /// Directories that rest after repeated errors.
    DiskFenced, Gauge, "weir_disk_fenced", "directories";
    /// Responses written to disk.
    DiskStored, Counter, "weir_disk_stored_total", "responses";
    /// Responses not written to disk, by reason.
    DiskRefused(reason: DiskRefusal), Counter, "weir_disk_refused_total", "responses";
    /// Stored responses that left the disk with their segment.
    DiskEvicted, Counter, "weir_disk_evicted_total", "responses";
    /// Bytes written to disk: content, heads, tables, and what was carried forward.
    DiskWrittenBytes, Counter, "weir_disk_written_bytes_total", "bytes";
    /// Bytes among them that were carried forward from segments that left.
    DiskCarriedBytes, Counter, "weir_disk_carried_bytes_total", "bytes";
    /// Bytes read from disk, or from what the system remembers of it.
    DiskReadBytes, Counter, "weir_disk_read_bytes_total", "bytes";
    /// Bytes that the scrub has verified in the background.
    DiskScrubbedBytes, Counter, "weir_disk_scrubbed_bytes_total", "bytes";
    /// Stretches on disk that were not as they had been written. They were not sent.
    DiskDamaged, Counter, "weir_disk_damaged_total", "stretches";
    /// Entries of purge journals that one of the two copies had lost. The other had them: nothing
    /// was dropped.
    DiskPurgesRecovered, Counter, "weir_disk_purges_recovered_total", "entries";
    /// Errors of the device, reading and writing.
    DiskErrors, Counter, "weir_disk_errors_total", "errors";

    // --- next hops -------------------------------------------------------------------------------
    /// Requests for an idle next-hop connection, by whether the connection cache had one.
    ConnectionCache(outcome: Reuse), Counter, "weir_connection_cache_requests_total", "requests";
    /// Next-hop connections closed because they were idle for too long, or open for too long.
    ConnectionCacheExpiries, Counter, "weir_connection_cache_expiries_total", "connections";
    /// Idle next-hop connections closed to make room for others.
    ConnectionCacheEvictions, Counter, "weir_connection_cache_evictions_total", "connections";
    /// Idle next-hop connections found closed, or with unexpected bytes.
    ConnectionCacheUnusable, Counter, "weir_connection_cache_unusable_total", "connections";
    /// Next-hop connections idle now.
    ConnectionCacheIdle, Gauge, "weir_connection_cache_idle", "connections";
    /// Choices of a next hop among those of a route, by the reason.
    RouteChoices(reason: RouteChoice), Counter, "weir_route_choices_total", "choices";
    /// Next-hop connections that HTTP/2 was spoken on, by why they ended.
    NextHopHttp2Connections(end: NextHopHttp2End), Counter,
        "weir_next_hop_http2_connections_total", "connections";
    /// Requests sent to next hops, repetitions and validations in the background included, tunnels
    /// not, by how each came to its connection.
    NextHopRequests(connection: Supply), Counter, "weir_next_hop_requests_total", "requests";
    /// Requests on a next-hop connection that was opened for another client, by its address.
    ReusesByOtherClient, Counter, "weir_connection_reuses_other_client_total", "requests";
    /// Requests on a next-hop connection that another worker used before.
    ReusesByOtherWorker, Counter, "weir_connection_reuses_other_worker_total", "requests";
    /// Clients, by address, that next-hop connections served, each counted once a connection.
    NextHopClients, Counter, "weir_next_hop_connection_clients_total", "clients";
    /// Next-hop connections opened, by the reason to open one.
    NextHopOpens(reason: OpenReason), Counter, "weir_next_hop_opens_total", "connections";
    /// Waits for a next-hop connection, by why the request began to wait.
    ConnectionWaits(reason: WaitReason), Counter, "weir_connection_waits_total", "waits";
    /// Waits for a next-hop connection that are over, by how they ended.
    ConnectionWaitEnds(end: WaitEnd), Counter, "weir_connection_waits_ended_total", "waits";
    /// Requests sent again on a fresh connection after a reused one closed before any byte of the
    /// response.
    Retries, Counter, "weir_next_hop_retries_total", "requests";
    /// Attempts to open a connection toward a next hop, by how they ended.
    NextHopConnections(outcome: HopOutcome), Counter, "weir_next_hop_connections_total", "connections";
    /// Next-hop connections open now, idle ones and tunnels included.
    NextHopsOpen, Gauge, "weir_next_hop_connections_open", "connections";
    /// Most next-hop connections open at once since the start, those being opened and tunnels
    /// included.
    NextHopsOpenMost, Gauge, "weir_next_hop_connections_open_max", "connections";
    /// Bytes read from next hops, heads and framing included, tunnels excluded.
    BytesFromNextHops, Counter, "weir_next_hop_received_bytes_total", "bytes";
    /// Bytes written to next hops, heads and framing included, tunnels excluded.
    BytesToNextHops, Counter, "weir_next_hop_sent_bytes_total", "bytes";
    /// Requests answered 502 because the next hop broke the rules or cut its response.
    NextHopErrors, Counter, "weir_next_hop_errors_total", "requests";
    /// Requests answered 504 because the next hop stayed silent.
    NextHopTimeouts, Counter, "weir_next_hop_timeouts_total", "requests";

    /// Probes of next hops that were sent (`route.probe`).
    Probes, Counter, "weir_next_hop_probes_total", "probes";
    /// Probes of next hops that failed: no connection, no head in time, another status.
    ProbesFailed, Counter, "weir_next_hop_probe_failures_total", "probes";

    // --- other nodes of the cluster --------------------------------------------------------------
    /// Requests sent to other nodes of the cluster.
    PeerRequests, Counter, "weir_peer_requests_total", "requests";
    /// Choices of the node that keeps a target, by the reason: another node is asked, or the origin
    /// if this node is the one.
    NodeChoices(reason: RouteChoice), Counter, "weir_node_choices_total", "choices";
    /// Nodes that did not answer a request as a member of the cluster does, or not in time: the
    /// next node was asked, or the origin.
    PeersFailed, Counter, "weir_peer_failures_total", "requests";
    /// Requests for which all connections to a node were in use: the next node was asked, or the
    /// origin.
    PeersBusy, Counter, "weir_peer_busy_total", "requests";
    /// Responses of nodes that are their own and no origin's, for lack of a route, a rule, a module
    /// or a connection: the origin was asked from here.
    PeersDeclined, Counter, "weir_peer_declined_total", "requests";
    /// Messages about what it holds that this node has sent to members.
    DigestsSent, Counter, "weir_peer_digests_sent_total", "messages";
    /// Messages about what other nodes hold that were received and taken.
    DigestsTaken, Counter, "weir_peer_digests_taken_total", "messages";
    /// Messages about what other nodes hold that were refused: of another version, length, secret
    /// or digest, or too large.
    DigestsRefused, Counter, "weir_peer_digests_refused_total", "messages";
    /// Requests for what other nodes hold that had no answer of a member.
    DigestsFailed, Counter, "weir_peer_digests_failed_total", "requests";
    /// Messages to other nodes of the cluster that say how this one is and ask how they are.
    PeerStateMessages, Counter, "weir_peer_state_messages_total", "messages";
    /// Messages of them that were not answered as a member does, or not in time.
    PeerStateFailures, Counter, "weir_peer_state_failures_total", "messages";
    /// Connections of clients that this front end has handed over to nodes, or this node to another
    /// one.
    HandOffs, Counter, "weir_hand_offs_total", "connections";
    /// Connections that were not handed over with a request that was to be forwarded, by the
    /// reason: the request was forwarded.
    HandOffsRefused(reason: HandOffRefusal), Counter, "weir_hand_offs_refused_total", "connections";
    /// Connections that were to be handed over and were reset: the node did not say whether it goes
    /// on with them.
    HandOffsLost, Counter, "weir_hand_offs_lost_total", "connections";
    /// Connections that this front end leads from one node to another, as the first one says
    /// (cluster.hand_off = multiple).
    FlowsMoved, Counter, "weir_flows_moved_total", "connections";
    /// Connections that this node has taken over from a front end or another node.
    ConnectionsAdopted, Counter, "weir_connections_adopted_total", "connections";
    /// Memory of what is known of what nodes hold, this one included.
    DigestBytes, Gauge, "weir_peer_digest_bytes", "bytes";
    /// Requests at peer listeners that were refused, by the reason: not of a member, or none that
    /// this node answers.
    PeersRefused(reason: PeerRefusal), Counter, "weir_peer_refusals_total", "requests";
    /// Requests at peer listeners of another process that has the name of this node: give each node
    /// its own.
    PeerNamesakes, Counter, "weir_peer_namesakes_total", "requests";
    /// Messages sent to other nodes of the cluster that say what they are to purge.
    PeerPurgeMessages, Counter, "weir_peer_purge_messages_total", "messages";
    /// Messages of them that were not answered as a member does: they are sent again.
    PeerPurgeFailures, Counter, "weir_peer_purge_failures_total", "messages";
    /// Purges and invalidations that a node of the cluster had not answered when the client or the
    /// operator was.
    PeerPurgesUntold, Counter, "weir_peer_purges_untold_total", "purges";
    /// Purges and invalidations that wait for nodes of the cluster which do not answer.
    PeerPurgesOverdue, Gauge, "weir_peer_purges_overdue", "purges";
    /// Purges that were applied as the log of purges has them.
    PurgeLogApplied, Counter, "weir_purge_log_applied_total", "purges";
    /// How often purges of the log may have been missed for good: what was stored before is
    /// validated.
    PurgeLogMissed, Counter, "weir_purge_log_missed_total", "times";
    /// 1 while what was stored before a time is validated at each use, as purges of it may have
    /// been missed: the log of purges was not read, or cannot be.
    PurgeLogBehind, Gauge, "weir_purge_log_behind", "nodes";
    /// Purges and invalidations that other nodes of the cluster asked for.
    PeerPurgesApplied, Counter, "weir_peer_purges_applied_total", "purges";

    /// Members of the cluster, this node included.
    ClusterMembers, Gauge, "weir_cluster_members", "members";
    /// How often the source of the members (`cluster.members`) gave no good list: the last one
    /// stayed.
    MemberSourceErrors, Counter, "weir_member_source_errors_total", "errors";
    /// How long ago the source of the members had the list that is in force.
    MembersAge, Gauge, "weir_cluster_members_age_seconds", "seconds";
    /// 1 if the URL that this node has among the members leads to another process: what is purged
    /// for this node is purged there.
    OwnUrlElsewhere, Gauge, "weir_cluster_own_url_elsewhere", "nodes";

    // --- fetches ---------------------------------------------------------------------------------
    /// Fetches under way: transfers from a next hop into a response that may be stored.
    FetchesUnderWay, Gauge, "weir_fetches_under_way", "fetches";
    /// Requests that wait now for the response head of another one's.
    FollowersWaiting, Gauge, "weir_followers_waiting", "requests";
    /// Fetches whose last reader disconnected, by their end and its reason.
    FetchesAbandoned(fate: Aborted), Counter, "weir_fetches_abandoned_total", "fetches";
    /// Fetches that no client waited for, and that were ended and kept as parts as their link had
    /// nothing for them: it was taken by others, or its quota was spent.
    FetchesPaused, Counter, "weir_fetches_paused_total", "fetches";
    /// Such parts whose completion has begun since.
    FetchesResumed, Counter, "weir_fetches_resumed_total", "fetches";
    /// Such parts that are to be completed, 64 at most.
    PausedParts, Gauge, "weir_paused_parts", "parts";
    /// Popular stored responses that were validated in a time window of a link.
    WindowRefreshes, Counter, "weir_window_refreshes_total", "responses";
    /// Responses under construction that turned out to have no room in the store: kept for their
    /// readers only, 128 KiB a reader behind the fastest, or 1 MiB where there is room for that.
    PassedThrough, Counter, "weir_passed_through_total", "responses";
    /// Body bytes read from next hops, whatever became of them. With those from the store and our
    /// own they are the body bytes sent to clients and the wasted ones.
    BodyBytesFromNextHops, Counter, "weir_next_hop_received_body_bytes_total", "bytes";
    /// All other bytes read from next hops: heads, framing, trailers, and what came behind a
    /// response.
    OverheadFromNextHops, Counter, "weir_next_hop_overhead_bytes_total", "bytes";
    /// Body bytes read from next hops that no client received while they arrived. Those that are
    /// stored may still serve.
    BytesWasted, Counter, "weir_wasted_bytes_total", "bytes";
    /// Body bytes of kept parts that were served later, out of the part or to its completion.
    BytesRecovered, Counter, "weir_recovered_bytes_total", "bytes";
    /// The furthest a fetch was ahead of its fastest reader: read from the next hop, and not yet
    /// with the client's kernel.
    ReadAheadMaxBytes, Gauge, "weir_read_ahead_max_bytes", "bytes";

    // --- names -----------------------------------------------------------------------------------
    /// Questions to the resolver, by how they were answered. IP literals and /etc/hosts are not
    /// questions.
    Dns(outcome: DnsOutcome), Counter, "weir_dns_requests_total", "requests";
    /// Lookups in flight toward name servers.
    DnsInFlight, Gauge, "weir_dns_lookups_in_flight", "lookups";

    // --- tunnels ---------------------------------------------------------------------------------
    /// Tunnels opened by CONNECT or Upgrade.
    TunnelsOpened, Counter, "weir_tunnels_opened_total", "tunnels";
    /// Tunnels open now.
    TunnelsOpen, Gauge, "weir_tunnels_open", "tunnels";
    /// Bytes relayed from next hops to clients through tunnels.
    TunnelBytesToClients, Counter, "weir_tunnel_client_sent_bytes_total", "bytes";
    /// Bytes relayed from clients to next hops through tunnels.
    TunnelBytesToNextHops, Counter, "weir_tunnel_next_hop_sent_bytes_total", "bytes";

    // --- the recorder ----------------------------------------------------------------------------
    /// Requests written into the trace of `weir serve --record`.
    Recorded, Counter, "weir_recorded_total", "requests";
    /// Requests that are not in the trace, by reason. Those of the reason lost had been counted as
    /// recorded before.
    Unrecorded(reason: Unrecorded), Counter, "weir_unrecorded_total", "requests";
    /// Requests that wait to be recorded.
    RecordQueued, Gauge, "weir_record_queued", "requests";
    /// Finished files of the trace.
    RecordFiles, Counter, "weir_record_files_total", "files";
    /// Bytes of the finished files of the trace.
    RecordWrittenBytes, Counter, "weir_record_written_bytes_total", "bytes";

    // --- modules ---------------------------------------------------------------------------------
    /// Calls of modules at hooks.
    ModuleCalls, Counter, "weir_module_calls_total", "calls";
    /// Requests answered by a module.
    ModuleResponses, Counter, "weir_module_responses_total", "requests";
    /// Calls of modules that failed, or that were not made because of earlier failures, by how.
    ModuleFailures(fault: ModuleFault), Counter, "weir_module_failures_total", "calls";

    /// Requests of modules' own, by what became of them. They pass no cache, and are not requests
    /// of clients.
    ModuleRequests(end: ModuleRequestEnd), Counter, "weir_module_requests_total", "requests";
    /// Calls of modules by their timers.
    ModuleTicks, Counter, "weir_module_ticks_total", "calls";
    /// Lines of modules that were not written to the log, as there were too many.
    ModuleLinesDropped, Counter, "weir_module_log_dropped_total", "lines";

    // --- logins of clients -----------------------------------------------------------------------
    /// Requests on listeners that ask for a login (`[login]`), by what came of it.
    Logins(outcome: LoginOutcome), Counter, "weir_logins_total", "requests";

    // --- rules of the operator -------------------------------------------------------------------
    /// Requests that a rule of the operator has denied (`rule[].deny`).
    RuleDenied, Counter, "weir_rule_denied_total", "requests";
    /// Seconds that responses were held back as a rule of the operator limits how fast clients are
    /// sent them (`rule[].rate`), all of them together.
    RuleLimited, Counter, "weir_rule_limited_seconds_total", "seconds";
    /// Responses that a rule limits and of which nothing was kept in memory for their client, which
    /// has as much kept as it may, or all have: what it has not read can be evicted, and is fetched
    /// for it then, or is not stored.
    RuleNotKept, Counter, "weir_rule_not_kept_total", "responses";
    /// Responses that a rule was to limit and that were sent as fast as their client took them:
    /// nothing more may be kept of them, and what is missing could not be fetched.
    RuleUnlimited, Counter, "weir_rule_unlimited_total", "responses";
    /// Requests that a stored response answers because a rule of the operator departs from RFC
    /// 9111, by how.
    RuleDeviations(what: RuleDeviation), Counter, "weir_rule_deviations_total", "requests";

    // --- the house -------------------------------------------------------------------------------
    /// Access log lines dropped because the queue was full or the destination failed.
    LogLinesDropped, Counter, "weir_access_log_dropped_total", "lines";
    /// Sums that are missing among the heavy hitters of `/top`, since these were read at the moment
    /// when a worker was to add them.
    TopDropped, Counter, "weir_top_dropped_total", "sums";
    /// Configs offered by SIGHUP or POST /reload, by what became of them.
    Reloads(outcome: ReloadOutcome), Counter, "weir_reloads_total", "reloads";
    /// Worker threads serving clients.
    Workers, Gauge, "weir_workers", "threads";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn metric_families_occupy_consecutive_slots_without_overlap() {
        let mut next = 0;
        for family in Metric::FAMILIES {
            assert_eq!(family.offset, next, "{}", family.name);
            assert_eq!(
                family.width,
                family.label.map_or(1, |label| label.words.len())
            );
            next += family.width;
        }
        assert_eq!(next, SLOTS);
    }

    #[test]
    fn label_value_slot_is_family_offset_plus_label_index() {
        for verdict in Verdict::ALL {
            let metric = Metric::Requests(*verdict);
            let family = metric.family();
            assert_eq!(family.name, "weir_requests_total");
            assert_eq!(metric.slot(), family.offset + verdict.index());
        }
        assert_eq!(Metric::ClientsAccepted.slot(), 0);
        assert_eq!(Metric::Workers.slot(), SLOTS - 1);
    }

    #[test]
    fn metric_names_and_help_follow_prometheus_conventions() {
        let mut seen = BTreeSet::new();
        for family in Metric::FAMILIES {
            let name = family.name;
            assert!(seen.insert(name), "`{name}` is declared twice");
            assert!(name.starts_with("weir_"), "{name}");
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{name}"
            );
            assert_eq!(
                name.ends_with("_total"),
                family.kind == Kind::Counter,
                "{name}"
            );
            assert_eq!(
                name.trim_end_matches("_total").ends_with("_bytes"),
                family.unit == "bytes",
                "{name}"
            );
            assert!(
                family.help.starts_with(' ') && family.help.ends_with('.'),
                "{name}: {}",
                family.help
            );
            assert!(
                !family.help.contains(['\n', '\\', '"']),
                "{name} would need escaping"
            );
        }
    }
}
