//! Picks the database node that a partition's writes go to, so that writes to one node can share a request: a replica,
//! because any other node would only forward them.

use std::sync::Arc;

use persistence::engine::Partition;
use scylla::cluster::{ClusterState, NodeRef};
use scylla::frame::response::result::TableSpec;
use scylla::policies::load_balancing::{FallbackPlan, LoadBalancingPolicy, RoutingInfo};
use scylla::routing::Shard;

use crate::cells::Bound;
use crate::config::CqlConfig;
use crate::lanes::NodeId;
use crate::session;

#[derive(Debug)]
pub(crate) struct Nodes {
    keyspace: String,
    local_datacenter: Option<String>,
    routing: Arc<dyn LoadBalancingPolicy>,
}

impl Nodes {
    pub(crate) fn new(config: &CqlConfig) -> Self {
        Self {
            keyspace: config.keyspace.clone(),
            local_datacenter: config.local_datacenter.clone(),
            routing: session::routing(config),
        }
    }

    /// The first connected replica. `None` if the driver knows none (yet).
    pub(crate) fn first_of(&self, cluster: &ClusterState, partition: &Partition) -> Option<NodeId> {
        if let [only] = cluster.get_nodes_info() {
            return Some(only.host_id);
        }
        let table = partition.table.0.name;
        let key: Vec<Bound> = partition.key.iter().cloned().map(Bound).collect();
        let token = cluster.compute_token(&self.keyspace, table, &key).ok()?;
        let strategy = &cluster.get_keyspace(&self.keyspace)?.strategy;
        let (datacenter, table) = (self.local_datacenter.as_deref(), TableSpec::borrowed(&self.keyspace, table));
        let replicas = cluster.replica_locator().replicas_for_token(token, strategy, datacenter, &table);
        let mut replicas = replicas.into_replicas_ordered().into_iter();
        replicas.find(|(node, _)| node.is_connected()).map(|(node, _)| node.host_id)
    }

    pub(crate) fn towards(&self, node: NodeId) -> Arc<dyn LoadBalancingPolicy> {
        Arc::new(Towards { node, otherwise: Arc::clone(&self.routing) })
    }
}

/// Routes to this node, or elsewhere if it is not connected.
#[derive(Debug)]
struct Towards {
    node: NodeId,
    otherwise: Arc<dyn LoadBalancingPolicy>,
}

impl LoadBalancingPolicy for Towards {
    fn pick<'a>(
        &'a self,
        request: &'a RoutingInfo<'_>,
        cluster: &'a ClusterState,
    ) -> Option<(NodeRef<'a>, Option<Shard>)> {
        let node = cluster.get_node_by_host_id(self.node).filter(|node| node.is_connected());
        node.map(|node| (node, None)).or_else(|| self.otherwise.pick(request, cluster))
    }

    fn fallback<'a>(&'a self, request: &'a RoutingInfo<'_>, cluster: &'a ClusterState) -> FallbackPlan<'a> {
        self.otherwise.fallback(request, cluster)
    }

    fn name(&self) -> String {
        "Towards".to_owned()
    }
}
