//! The workload web by axum: tasks on Tokio's runtime, on as many threads as there are cores.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{Path, Query};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Work {
    wait: Option<String>,
    cpu: Option<String>,
    #[serde(default)]
    size: usize,
}

#[derive(Serialize)]
struct Item {
    id: u32,
    name: &'static str,
}

fn read_time(text: Option<String>) -> Duration {
    let text = text.unwrap_or_default();
    Duration::from_micros(text.trim_end_matches("us").parse().unwrap_or(0))
}

/// Busy by the clock.
fn burn(duration: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < duration {}
}

async fn answer(Path(stamp): Path<String>, Query(work): Query<Work>) -> String {
    let wait = read_time(work.wait);
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    burn(read_time(work.cpu));
    let filling = work.size.saturating_sub(stamp.len());
    stamp + &"x".repeat(filling)
}

async fn list_items() -> Json<[Item; 3]> {
    Json([Item { id: 1, name: "one" }, Item { id: 2, name: "two" }, Item { id: 3, name: "three" }])
}

async fn count_bytes(body: Bytes) -> Json<usize> {
    Json(body.len())
}

async fn serve(address: String) -> std::io::Result<()> {
    let routes = Router::new().route("/items", get(list_items).post(count_bytes)).route("/{stamp}", get(answer));
    axum::serve(tokio::net::TcpListener::bind(address).await?, routes).await
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let threads = arguments[2].parse().expect("a number of threads");
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?
        .block_on(serve(arguments[1].clone()))
}
