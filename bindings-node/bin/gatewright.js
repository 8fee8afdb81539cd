#!/usr/bin/env node

// The program is the one the Rust package builds; signals keep their default meaning.
const { native } = require("../dist/native");

process.exitCode = native.runProgram(process.argv.slice(2));
