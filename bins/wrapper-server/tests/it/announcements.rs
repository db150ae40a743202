//! Tests of the announcement, with a runner simulated by the test.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use runner_proto::{
    announce::{
        AnnounceRequest, AnnounceResponse,
        announcements_server::{Announcements, AnnouncementsServer},
    },
    health::{HealthCheckRequest, health_check_response::ServingStatus},
};
use runner_test_support::{Client, LIST, eventually, free_address, list_of};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use crate::support::Setup;

/// A simulated runner that records each announcement and whether the wrapper serves by then.
struct Home {
    address: String,
    heard: Heard,
    serving: JoinHandle<()>,
}

#[derive(Clone)]
struct Heard {
    calls: Arc<Mutex<Vec<(AnnounceRequest, bool)>>>,
    refuses: Option<fn(&str) -> Status>,
}

// === impl Home ===

impl Home {
    async fn new(refuses: Option<fn(&str) -> Status>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        Self::on(listener, 0, refuses)
    }

    /// Starts a runner that closes the first few connections, as if it had not started yet.
    fn on(listener: TcpListener, closes: usize, refuses: Option<fn(&str) -> Status>) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let heard = Heard {
            calls: Arc::default(),
            refuses,
        };
        let server = Server::builder().add_service(AnnouncementsServer::new(heard.clone()));
        let serving = tokio::spawn(async move {
            for _ in 0..closes {
                drop(listener.accept().await.unwrap());
            }
            let incoming = TcpListenerStream::new(listener);
            server.serve_with_incoming(incoming).await.unwrap();
        });
        Self {
            address,
            heard,
            serving,
        }
    }

    fn calls(&self) -> Vec<(AnnounceRequest, bool)> {
        self.heard.calls.lock().unwrap().clone()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[tonic::async_trait]
impl Announcements for Heard {
    async fn announce(
        &self,
        request: Request<AnnounceRequest>,
    ) -> Result<Response<AnnounceResponse>, Status> {
        let request = request.into_inner();
        let port: u16 = request.address.rsplit(':').next().unwrap().parse().unwrap();
        let client = Client::to((Ipv4Addr::LOCALHOST, port).into()).await;
        let health = client.health().check(HealthCheckRequest::default()).await;
        let serves = health.is_ok_and(|health| health.get_ref().status() == ServingStatus::Serving);
        self.calls.lock().unwrap().push((request, serves));
        match self.refuses {
            Some(refuse) => Err(refuse("no")),
            None => Ok(Response::new(AnnounceResponse {})),
        }
    }
}

fn calling(runner: &str, pod_address: &str) -> Setup {
    Setup::script("cat")
        .flag("--verbosity=3")
        .env("KRM_WRAPPER_RUNNER", runner)
        .env("KRM_WRAPPER_SLOT", "set-label-v1-1-0a1b2c3d")
        .env("KRM_WRAPPER_TOKEN", "one-time")
        .env("KRM_WRAPPER_POD_ADDRESS", pod_address)
}

#[tokio::test(flavor = "multi_thread")]
async fn announces_once_with_its_address_when_serving() {
    let home = Home::new(None).await;
    let wrapper = calling(&home.address, "198.18.7.7").start().await;
    wrapper.logged(" announced ").await;
    assert_eq!(list_of(wrapper.client().await.call("fn").await), LIST);
    let said = AnnounceRequest {
        pod: "set-label-v1-1-0a1b2c3d".to_owned(),
        token: "one-time".to_owned(),
        address: format!("198.18.7.7:{}", wrapper.address.port()),
    };
    assert_eq!(home.calls(), [(said, true)]);
    assert!(!wrapper.log().contains("one-time"), "{}", wrapper.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn puts_an_ipv6_address_in_brackets() {
    let home = Home::new(None).await;
    let wrapper = calling(&home.address, "fd00::7").start().await;
    let call = eventually("a call", || home.calls().pop()).await;
    let address = format!("[fd00::7]:{}", wrapper.address.port());
    assert_eq!(call.0.address, address);
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_until_the_runner_is_reachable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let home = Home::on(listener, 2, None);
    let wrapper = calling(&home.address, "198.18.7.7").start().await;
    wrapper.logged(" announced ").await;
    assert_eq!(home.calls().len(), 1);
    assert!(wrapper.log().contains("announcement failed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn gives_up_after_six_attempts_and_keeps_serving() {
    let nobody = free_address().to_string();
    let wrapper = calling(&nobody, "198.18.7.7").start().await;
    wrapper.logged("attempt=6").await;
    assert_eq!(list_of(wrapper.client().await.call("fn").await), LIST);
    let log = wrapper.log();
    let about: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("announce"))
        .collect();
    assert_eq!(about.len(), 6, "{log}");
    assert!(about.iter().all(|line| line.contains("DEBUG")), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_retry_a_refused_token() {
    let home = Home::new(Some(|why| Status::permission_denied(why))).await;
    let wrapper = calling(&home.address, "198.18.7.7").start().await;
    wrapper.logged("announcement refused").await;
    assert_eq!(list_of(wrapper.client().await.call("fn").await), LIST);
    assert_eq!(home.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_a_busy_runner_six_times() {
    let home = Home::new(Some(|why| Status::unavailable(why))).await;
    let wrapper = calling(&home.address, "198.18.7.7").start().await;
    wrapper.logged("attempt=6").await;
    assert_eq!(home.calls().len(), 6);
}
