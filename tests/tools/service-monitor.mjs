// Validates a ServiceMonitor with its operator's schema, which no validator for the cluster's own resources
// has.
import { readFileSync } from "node:fs";

import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor";
import { parse } from "yaml";

const monitor = parse(readFileSync(process.argv[2], "utf8"));
if (monitor.kind !== "ServiceMonitor") throw new Error(`${process.argv[2]} is no ServiceMonitor`);
new ServiceMonitor(monitor).validate();
