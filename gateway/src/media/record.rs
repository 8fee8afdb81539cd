//! The task object of 2.7.

use gatewright_store::{Task, TaskState};
use serde_json::{Value, json};

use crate::storage::GeneratedFiles;

/// Writes a task. `public`: scheme, host and port of the file URL.
pub(super) fn record_of(task: &Task, files: &GeneratedFiles, public: &str) -> Value {
    let mut record =
        json!({ "id": task.id, "status": "processing", "created": task.created, "model": *task.model });
    match &task.state {
        TaskState::Pending => record["status"] = json!("pending"),
        TaskState::Processing => {}
        TaskState::Completed(output) => {
            record["status"] = json!("completed");
            record["output"] = json!({
                "url": format!("{public}{}", files.address(&output.file)),
                "duration": output.duration_s,
                "resolution": format!("{}x{}", output.size.0, output.size.1),
                "format": output.file.name.kind().extension(),
            });
        }
        TaskState::Failed(problem) => {
            record["status"] = json!("failed");
            record["error"] = json!({ "message": problem.message, "code": problem.code });
        }
    }
    record
}
