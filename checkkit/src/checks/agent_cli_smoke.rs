//! `agent_cli_smoke`: the agent gets the run's token from the service and does nothing else.

use std::fmt::Write as _;

use super::context::{Context, prompt};
use crate::agent::{AgentRun, CapturedOutput, NotStarted, ProcessExit, Transcript};
use crate::cell::Cell;
use crate::failure::{Category, Failure};

pub(super) async fn check(context: &Context<'_>, cell: &mut Cell, model: &str) {
    let Some(agent) = context.agent else {
        let failure = Failure::new(Category::Internal, "the run has no agent");
        return cell.fail("agent", "a program", "none", failure);
    };
    cell.check.agent_version = Some(agent.version.clone());
    let run = agent.run(model, &prompt(context.token)).await;
    let request = request(&run);
    let ended = match run.ended {
        Ok(ended) => ended,
        Err(not_started) => {
            cell.exchanged(request, String::new());
            let program = agent.program.display();
            let failure = match not_started {
                NotStarted::Missing => Failure::new(
                    Category::Configuration,
                    format!("the agent's program {program} was not found: install it, set its path, or skip the agent"),
                )
                .code("agent_not_found"),
                NotStarted::Other(why) => {
                    let message = format!("the agent's program {program} cannot be started: {why}");
                    Failure::new(Category::Configuration, message).code("agent_not_started")
                }
            };
            return cell.fail("program", "it starts", failure.message.clone(), failure);
        }
    };
    cell.exchanged(request, response(&ended));
    judge(cell, &ended, context.token, agent.timeout.as_millis());
}

fn judge(cell: &mut Cell, ended: &ProcessExit, token: &str, timeout_ms: u128) {
    let transcript = Transcript::read(&ended.stdout.text);
    let check = &mut cell.check;
    check.exit_code = Some(ended.exit_code.map(i64::from));
    check.signal = Some(ended.signal.clone());
    check.timed_out = Some(ended.timed_out);
    check.unexpected_item_detected = Some(!transcript.deeds.is_empty());
    check.usage = Some(transcript.usage);
    let message = transcript.message.as_deref().unwrap_or_default();
    let verified = message.contains(token);
    check.output_verified = Some(verified);

    let fail =
        |cell: &mut Cell, what: &str, expected: &str, observed: String, category: Category, code: &str| {
            let mut message = format!("{what}: expected {expected}, found {observed}");
            // A program that was stopped did not print its last message.
            let stderr = (!ended.timed_out).then_some(&ended.stderr);
            if let Some(complaint) = complaint(&transcript, stderr) {
                // Writing to a string succeeds.
                let _ = write!(message, "; the agent says: {complaint}");
            }
            cell.fail(what, expected, observed, Failure::new(category, message).code(code));
        };
    if ended.timed_out {
        let expected = format!("within {timeout_ms} ms");
        fail(cell, "end of the agent", &expected, "none".to_owned(), Category::Timeout, "agent_timeout");
    } else if let Some(signal) = &ended.signal {
        fail(cell, "end of the agent", "exit code 0", signal.clone(), Category::Agent, "agent_signal");
    } else if ended.exit_code != Some(0) {
        let found = ended.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        fail(cell, "exit code", "0", found, Category::Agent, "agent_exit");
    } else {
        cell.assert(Category::Agent, "exit code", "0", "0", true);
    }
    let last = transcript.last_event.clone().unwrap_or_else(|| "none".to_owned());
    if last == "turn.completed" {
        cell.assert(Category::Agent, "last event", "turn.completed", last, true);
    } else {
        fail(cell, "last event", "turn.completed", last, Category::Agent, "agent_turn_not_completed");
    }
    let expected = "messages and reasoning alone";
    if transcript.deeds.is_empty() {
        cell.assert(Category::Agent, "items", expected, expected, true);
    } else {
        let deeds = transcript.deeds.join("; ");
        fail(cell, "items", expected, deeds, Category::Agent, "agent_unexpected_item");
    }
    let shown = transcript.message.as_ref().map_or_else(|| "none".to_owned(), |text| format!("{text:?}"));
    cell.assert(Category::Verification, "last message", format!("{token} in it"), shown, verified);
}

/// The error that the agent reports: from its events, or else from the end of its standard error.
fn complaint(transcript: &Transcript, stderr: Option<&CapturedOutput>) -> Option<String> {
    let last_line = || stderr?.text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
    transcript.complaint.clone().or_else(last_line)
}

fn request(run: &AgentRun) -> String {
    let mut text = run.command_line.join("\n");
    // Writing to a string succeeds.
    let _ = write!(text, "\n\n--- environment\n{}\n", run.environment.join("\n"));
    text
}

fn response(ended: &ProcessExit) -> String {
    let mut text = String::new();
    for (name, output) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        let cut = if output.cut { "\n[cut]" } else { "" };
        // Writing to a string succeeds.
        let _ = writeln!(text, "--- {name}\n{}{cut}", output.text.trim_end());
    }
    let code = ended.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    let signal = ended.signal.as_deref().unwrap_or("none");
    let _ = writeln!(text, "--- end\nexit code {code}, signal {signal}, timed out {}", ended.timed_out);
    text
}
