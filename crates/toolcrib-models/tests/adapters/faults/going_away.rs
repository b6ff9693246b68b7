//! The caller drops the response.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::runtime::Handle;
use toolcrib_core::Model;
use toolcrib_models::Vendor;
use toolcrib_testbed::{CannedServer, Reply};

use super::{Answer, hello, in_time, model, wire};

fn said() -> Answer {
    Answer::text(&["Look", "ing", " up."]).calling("call_a", "find_order", &["{\"id\"", ":1}"])
}

/// Waits until so few tasks are left.
async fn until_tasks_are(few: usize) {
    while Handle::current().metrics().num_alive_tasks() > few {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_dropped_is_left_at_once_and_leaves_nothing_behind() {
    for vendor in Vendor::ALL {
        let frames = wire::frames(vendor, &said());
        // Everything up to the end, which does not come.
        let begun = frames.len() - wire::end(vendor, &said()).len();
        let stalls = (0..=begun).map(|sent| {
            let frames = frames[..sent].iter().cloned();
            frames.fold(wire::reply(vendor), Reply::piece).hold()
        });
        let replies: Vec<_> = [Reply::nothing().hold()].into_iter().chain(stalls).collect();
        let stalling = replies.len();
        let server = CannedServer::start(replies).await.unwrap();
        let model = model(&server, vendor);
        let tasks = Handle::current().metrics().num_alive_tasks();
        for gone in 1..=stalling {
            let mut answer = Arc::clone(&model).respond(hello());
            // Up to the pause; then no data comes, and the caller is gone.
            let mut asked = Box::pin(async { while answer.next().await.is_some() {} });
            let is_asked = async {
                server.recorder().wait_for(gone).await;
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
            };
            in_time(async {
                tokio::select! {
                    () = &mut asked => panic!("{vendor}: an answer that does not end has ended"),
                    () = is_asked => {}
                }
            })
            .await;
            drop(asked);
            drop(answer);
            in_time(server.wait_until_left(gone)).await;
            in_time(until_tasks_are(tasks)).await;
        }
        assert_eq!((server.open(), server.recorder().len()), (0, stalling), "{vendor}");
    }
}

#[tokio::test]
async fn a_stream_can_be_dropped_after_each_event() {
    for vendor in Vendor::ALL {
        let pieces = 3;
        let reply =
            wire::frames(vendor, &said()).into_iter().fold(wire::reply(vendor), Reply::piece);
        let server = CannedServer::start(vec![reply.hold(); pieces + 1]).await.unwrap();
        let model = model(&server, vendor);
        for wanted in 0..=pieces {
            let mut answer = Arc::clone(&model).respond(hello());
            for _ in 0..wanted {
                in_time(answer.next()).await.unwrap().unwrap();
            }
            // A response that has not begun has sent no request.
            if wanted == 0 {
                assert!(answer.next().now_or_never().is_none());
            }
            drop(answer);
        }
        in_time(server.wait_until_left(pieces)).await;
    }
}

#[tokio::test]
async fn an_unpolled_stream_sends_no_request() {
    for vendor in Vendor::ALL {
        let server = CannedServer::start([]).await.unwrap();
        drop(Arc::clone(&model(&server, vendor)).respond(hello()));
        assert_eq!(server.connections(), 0);
    }
}
