//! What Debian's broker keeps of acknowledged messages when it is killed, by how it saves.

use libtest_mimic::Trial;
use tacho_testkit::runs::persistent::{Course, persistent};

use crate::process::Peer;
use crate::{TACHO, Verdict, trial};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let name = "persistent_runs_against_mosquitto".to_owned();
    trials.push(trial(name, &[Peer::Mosquitto], nothing_is_lost_by_a_broker_that_lives));
    let name = "a_killed_mosquitto_loses_by_how_it_saves".to_owned();
    trials.push(trial(name, &[Peer::Mosquitto], losses));
}

/// Mosquitto with its database in the run's directory.
fn run(saving: &str, variables: &[&str]) -> Result<Course, String> {
    let program = Peer::Mosquitto.find().ok_or("no mosquitto")?;
    // As root it would otherwise switch to the user `mosquitto`, which cannot write there. Version
    // 2.0.11 reads the sessions of 5.0 clients back as ended.
    let script = format!(
        "printf \"user root\\nlistener {{port}} 127.0.0.1\\nallow_anonymous true\\n\
         set_tcp_nodelay true\\nlog_type error\\npersistence true\\n\
         persistence_location {{dir}}/\\n{saving}\" > {{dir}}/mosquitto.conf; \
         exec {} -c {{dir}}/mosquitto.conf",
        program.display()
    );
    let command = format!("sh -c '{script}'");
    let mut arguments = vec!["--broker-cmd", &command, "--var", "version=3.1.1"];
    variables.iter().for_each(|variable| arguments.extend(["--var", variable]));
    persistent(TACHO, &arguments)
}

fn nothing_is_lost_by_a_broker_that_lives() -> Verdict {
    let course = run("", &["qos=2"])?;
    let counts = ["sent", "received", "acknowledged_lost", "duplicates", "sessions_lost"];
    let right = counts.map(|key| course.count(key)) == [200, 200, 0, 0, 0];
    Ok(course.insist("not everything came", right)?)
}

/// Saved every half hour, everything is gone; saved after every few changes, little is.
fn losses() -> Verdict {
    let seldom = run("", &["kills=1"])?;
    let (lost, sessions) = (seldom.count("acknowledged_lost"), seldom.count("sessions_lost"));
    let gone = seldom.code == Some(110) && lost > 100 && sessions >= 10;
    seldom.insist("too little was lost", gone && seldom.count("sent") == 200)?;
    let saving = "autosave_interval 1\\nautosave_on_changes true\\n";
    let often = run(saving, &["kills=3"])?;
    let kills = often.count("kills");
    let kept = often.count("acknowledged_lost") < lost && often.count("sessions_lost") == 0;
    Ok(often.insist("too much was lost", kept && (1..=3).contains(&kills))?)
}
