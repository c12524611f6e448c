//! The workload web by axum: tasks on Tokio's runtime, on as many threads as there are cores.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use futures_util::stream;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Work {
    wait: Option<String>,
    cpu: Option<String>,
    every: Option<String>,
    #[serde(default)]
    size: usize,
    #[serde(default)]
    chunks: u32,
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

/// Each chunk leaves when it is due, by a schedule that begins with the request.
fn stream_chunks(stamp: String, chunks: u32, every: Duration, size: usize) -> Response {
    let begin = tokio::time::Instant::now();
    let events = stream::unfold(0, move |number| {
        let data = format!("{stamp}{number:04}");
        async move {
            if number == chunks {
                return None;
            }
            if number > 0 {
                tokio::time::sleep_until(begin + every * number).await;
            }
            Some((Ok::<_, Infallible>(format!("data: {data:x<size$}\n\n")), number + 1))
        }
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

async fn answer(Path(stamp): Path<String>, Query(work): Query<Work>) -> Response {
    if work.chunks > 0 {
        return stream_chunks(stamp, work.chunks, read_time(work.every), work.size);
    }
    let wait = read_time(work.wait);
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    burn(read_time(work.cpu));
    let filling = work.size.saturating_sub(stamp.len());
    (stamp + &"x".repeat(filling)).into_response()
}

async fn list_items() -> Json<[Item; 3]> {
    Json([Item { id: 1, name: "one" }, Item { id: 2, name: "two" }, Item { id: 3, name: "three" }])
}

async fn count_bytes(body: Bytes) -> Json<usize> {
    Json(body.len())
}

async fn serve(address: String) -> std::io::Result<()> {
    let routes = Router::new().route("/items", get(list_items).post(count_bytes)).route("/{stamp}", get(answer));
    let listener = tokio::net::TcpListener::bind(address).await?.tap_io(|stream| {
        let _ = stream.set_nodelay(true); // a stream that has ended needs none
    });
    axum::serve(listener, routes).await
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let threads = arguments[2].parse().expect("a number of threads");
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?
        .block_on(async { tokio::spawn(serve(arguments[1].clone())).await.expect("it does not panic") })
}
