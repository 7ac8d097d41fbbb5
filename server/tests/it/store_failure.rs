//! The server while its store fails: calls are refused at once with the reason, health says so, and both recover by
//! themselves with nothing lost.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use persistence::embedded::{Embedded, Options};
use proto::temporal::api::common::v1::{Payload, Payloads, WorkflowExecution, WorkflowType};
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::given::{NAMESPACE, within};

/// What a client waits for at most; an answer must not take this long.
const DEADLINE: Duration = Duration::from_secs(10);
const AT_ONCE: Duration = Duration::from_secs(2);
const RECOVERY_MAX: Duration = Duration::from_secs(30);

struct Server {
    process: Child,
    channel: Channel,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The limit on the size of files stands for a full disk: it needs no mount and no privilege, and is lifted from outside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_reported_at_once_and_survived() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    // Made in advance: a new journal is given more room at once than the limit allows.
    drop(Embedded::open(directory.path().join("data"), Options::default()).expect("a new store opens"));
    let server = Server::start("trap '' XFSZ; ulimit -S -f 4096", &directory.path().join("data")).await;

    let mut started = 0;
    let (refusal, took) = loop {
        let began = Instant::now();
        match server.start_workflow(started).await {
            Ok(()) => started += 1,
            Err(status) => break (status, began.elapsed()),
        }
        assert!(started < 1000, "the disk is not full");
    };
    assert_eq!(refusal.code(), Code::Unavailable, "{refusal:?}");
    assert!(refusal.message().contains("the store is down: a file has reached its largest size"), "{refusal:?}");
    assert!(took < AT_ONCE, "the refusal took {took:?}");
    let began = Instant::now();
    while server.health().await != ServingStatus::NotServing {
        assert!(began.elapsed() < AT_ONCE, "health does not follow the store");
    }
    let began = Instant::now();
    assert_eq!(server.describe(0).await.expect_err("the store is down").code(), Code::Unavailable);
    assert!(began.elapsed() < AT_ONCE, "a read took {:?}", began.elapsed());

    let lifted =
        Command::new("prlimit").args(["--pid", &server.process.id().to_string(), "--fsize=unlimited"]).status();
    assert!(lifted.expect("prlimit is installed").success());
    let began = Instant::now();
    while server.health().await != ServingStatus::Serving {
        assert!(began.elapsed() < RECOVERY_MAX, "health does not recover");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let serving_after = began.elapsed();
    while let Err(status) = server.start_workflow(started).await {
        assert!(began.elapsed() < RECOVERY_MAX, "it does not recover: {status:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    eprintln!(
        "refused after {took:?}; serving {serving_after:?}, starting {:?} after the room came back",
        began.elapsed()
    );
    for number in 0..=started {
        server.describe(number).await.unwrap_or_else(|status| panic!("workflow {number} is lost: {status:?}"));
    }
}

impl Server {
    async fn start(limit: &str, data: &Path) -> Self {
        let mut process = Command::new("sh")
            .args(["-c", &format!("{limit}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_everrow")])
            .args(["dev", "--port", "0", "--shards", "1", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut banner = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut banner).expect("the server says that it is ready");
        let address = banner.split("gRPC on ").nth(1).and_then(|rest| rest.split([',', ' ']).next());
        let address = format!("http://{}", address.unwrap_or_else(|| panic!("no address in {banner:?}")));
        let channel = Channel::from_shared(address).expect("an address").connect().await.expect("the node listens");
        Self { process, channel }
    }

    async fn start_workflow(&self, number: usize) -> Result<(), Status> {
        let data = Payload { data: vec![7; 60_000].into(), ..Default::default() };
        let request = public::StartWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_id: workflow_id(number),
            workflow_type: Some(WorkflowType { name: "large".into() }),
            task_queue: Some(TaskQueue { name: "queue".into(), ..Default::default() }),
            input: Some(Payloads { payloads: vec![data] }),
            request_id: workflow_id(number),
            ..Default::default()
        };
        let mut client = WorkflowServiceClient::new(self.channel.clone());
        client.start_workflow_execution(within(DEADLINE, request)).await.map(|_| ())
    }

    async fn describe(&self, number: usize) -> Result<(), Status> {
        let request = public::DescribeWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            execution: Some(WorkflowExecution { workflow_id: workflow_id(number), run_id: String::new() }),
        };
        let mut client = WorkflowServiceClient::new(self.channel.clone());
        client.describe_workflow_execution(within(DEADLINE, request)).await.map(|_| ())
    }

    async fn health(&self) -> ServingStatus {
        let mut client = HealthClient::new(self.channel.clone());
        let answer = client.check(within(DEADLINE, HealthCheckRequest { service: String::new() })).await;
        answer.expect("health is always answered").into_inner().status()
    }
}

fn workflow_id(number: usize) -> String {
    format!("workflow-{number}")
}
