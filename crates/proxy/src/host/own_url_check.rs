//! Asks the URL of this node whether it leads to this process, on the first worker: after each
//! change of the members, and at intervals while it does not.

use super::{member_message, worker_task};
use crate::cluster::{Cluster, ClusterState, Lead, OWN_URL};
use crate::modules::own_work::OwnWork;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use weir_extend::FetchError;
use weir_net::workers::Stage;

/// How often it is looked at whether the members have changed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two requests while the URL leads elsewhere or nowhere.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Asks from now on until a shutdown begins; on the first worker. To be called once on each.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Draining, run);
}

async fn run(worker: &Rc<Worker>) {
    let room: Arc<OwnWork> = Arc::default();
    // what is known of the members is made anew when they change
    let mut asked: Weak<ClusterState> = Weak::new();
    let mut again: Option<Instant> = None;
    loop {
        let settings = worker.settings();
        let own_url = &settings.membership.own_url;
        match settings.cluster() {
            None => {
                asked = Weak::new();
                own_url.forget();
            }
            Some(cluster) => {
                let state = Arc::downgrade(cluster.state());
                let is_changed = !asked.ptr_eq(&state);
                let is_due = again.is_some_and(|again| Instant::now() >= again);
                if is_changed || is_due {
                    asked = state;
                    let is_known = ask(worker, &room, &settings, &cluster).await;
                    let interval = match is_known {
                        true => RETRY_INTERVAL,
                        false => LOOK_INTERVAL,
                    };
                    let leads_here = own_url.lead() == Lead::Here;
                    again = (!leads_here).then(|| Instant::now() + interval);
                }
            }
        }
        drop(settings);
        sleep(LOOK_INTERVAL).await;
    }
}

/// Asks once; whether it is known now where the URL leads.
async fn ask(
    worker: &Rc<Worker>,
    room: &Arc<OwnWork>,
    settings: &Arc<Settings>,
    cluster: &Cluster,
) -> bool {
    let own_url = &settings.membership.own_url;
    let nonce = own_url.begin();
    let request = member_message::get(cluster, cluster.own(), (OWN_URL, "/"), &nonce);
    let limit = settings.config.cluster.peer_timeout.as_duration();
    let sent = member_message::send(worker, room, settings, &request);
    let response = match timeout(limit, sent).await {
        Err(_) => Err("it did not answer in time".to_owned()),
        // this process listens there, and so would not connect: as good as its own request
        Ok(Err(FetchError::Forbidden)) => {
            own_url.receive(&nonce);
            Ok(())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(_)) => Ok(()),
    };
    let url = format!("http://{}", request.0.hop);
    if let Some(lead) = own_url.end(url, response) {
        let line = format!("cluster: node {}: {lead}", cluster.own_name());
        worker.shared.module_log.write(line);
    }
    own_url.lead() != Lead::Unknown
}
