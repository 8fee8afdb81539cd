#!/usr/bin/env node

// The program is the one the Rust package builds; signals keep their default meaning.
const { runProgram } = require("../dist/cli");

process.exitCode = runProgram(process.argv.slice(2));
