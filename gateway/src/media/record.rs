//! The task object of 2.7.

use serde_json::{Value, json};

use crate::store::{Files, State, Task};

/// Writes a task. `public`: scheme, host and port of the file URL.
pub(super) fn record_of(task: &Task, files: &Files, public: &str) -> Value {
    let mut record =
        json!({ "id": task.id, "status": "processing", "created": task.created, "model": *task.model });
    match &task.state {
        State::Pending => record["status"] = json!("pending"),
        State::Processing => {}
        State::Completed(output) => {
            record["status"] = json!("completed");
            record["output"] = json!({
                "url": format!("{public}{}", files.address(&output.file)),
                "duration": output.duration_s,
                "resolution": format!("{}x{}", output.size.0, output.size.1),
                "format": output.file.name.kind().extension(),
            });
        }
        State::Failed(problem) => {
            record["status"] = json!("failed");
            record["error"] = json!({ "message": problem.message, "code": problem.code });
        }
    }
    record
}
