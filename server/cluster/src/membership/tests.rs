//! Joining a cluster and staying in it.

use persistence::model::Model;
use persistence::stores::Stores;

use super::*;

fn config(shards: i32) -> ClusterConfig {
    ClusterConfig { shards, ..ClusterConfig::default() }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_join_agree_on_the_cluster() {
    let store = Stores::new(Model::new()).cluster;
    let env = Env::simulated(1);
    let terms = config(4);
    let (one, other) = tokio::join!(join(&store, &terms, "model", &env), join(&store, &terms, "model", &env));
    let one = one.unwrap();
    assert_eq!(one, other.unwrap());
    assert_eq!((one.n_shards, one.name.as_str()), (4, "active"));
}

#[tokio::test(start_paused = true)]
async fn another_number_of_shards_is_refused_with_what_to_do() {
    let store = Stores::new(Model::new()).cluster;
    let env = Env::simulated(1);
    join(&store, &config(4), "model", &env).await.unwrap();
    let error = join(&store, &config(8), "model", &env).await.unwrap_err().to_string();
    assert!(error.contains("made with 4 shards") && error.contains("set cluster.shards (or --shards) to 4"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_node_beats_until_it_leaves() {
    let store = Stores::new(Model::new()).cluster;
    let env = Env::simulated(1);
    let cluster = join(&store, &config(4), "model", &env).await.unwrap();
    let heartbeat = Heartbeat::new(store.clone(), env.clone(), &cluster, "127.0.0.1:7233".into());
    let host_id = heartbeat.host_id;
    let (stop, stopped) = watch::channel(false);
    let beating = tokio::spawn(heartbeat.run(stopped));
    tokio::time::sleep(HEARTBEAT_EVERY * 10).await;
    let members = store.members().await.unwrap();
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].host_id, host_id);
    assert_eq!(members[0].record.cluster_id, Vec::from(cluster.id.as_bytes().as_slice()));
    assert!(env.now().since(members[0].heartbeat_at) <= HEARTBEAT_EVERY);

    stop.send_replace(true);
    beating.await.unwrap();
    assert_eq!(store.members().await.unwrap(), []);
}
