//! The workload web by actix-web: a worker with an event loop for each core.

use std::time::{Duration, Instant};

use actix_web::web::{self, Bytes, Json, Path, Query};
use actix_web::{rt, App, HttpServer};
use serde::{Deserialize, Serialize};

const MOST_OF_A_BODY: usize = 1 << 20;

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

async fn answer(stamp: Path<String>, Query(work): Query<Work>) -> String {
    let wait = read_time(work.wait);
    if !wait.is_zero() {
        rt::time::sleep(wait).await;
    }
    burn(read_time(work.cpu));
    let stamp = stamp.into_inner();
    let filling = work.size.saturating_sub(stamp.len());
    stamp + &"x".repeat(filling)
}

async fn list_items() -> Json<[Item; 3]> {
    Json([Item { id: 1, name: "one" }, Item { id: 2, name: "two" }, Item { id: 3, name: "three" }])
}

async fn count_bytes(body: Bytes) -> Json<usize> {
    Json(body.len())
}

fn add_routes(service: &mut web::ServiceConfig) {
    service
        .app_data(web::PayloadConfig::new(MOST_OF_A_BODY))
        .route("/items", web::get().to(list_items))
        .route("/items", web::post().to(count_bytes))
        .route("/{stamp}", web::get().to(answer));
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let threads = arguments[2].parse().expect("a number of threads");
    HttpServer::new(|| App::new().configure(add_routes))
        .workers(threads)
        .client_request_timeout(Duration::ZERO) // a client may be idle before its first request
        .bind(&arguments[1])?
        .run()
        .await
}
