//! The official SDKs of the native protocol, pinned, against the gateway: what they send is not always what the
//! protocol's documentation shows.

use anyhow::Result;

use crate::artefacts::{self, npm_ci, python};
use crate::local_gateway::LocalGateway;
use crate::process::{command, root, run};

/// Runs the script of each SDK; they assert what they get.
pub(crate) fn serve_them() -> Result<()> {
    let folder = root().join("tests/native-clients");
    artefacts::pip_install(&folder.join("requirements.txt"))?;
    npm_ci(&folder)?;
    let gateway = LocalGateway::start()?;
    run(gateway.reach_from(python().arg(folder.join("official.py"))))?;
    run(gateway.reach_from(command("node").arg(folder.join("official.mjs"))))
}
