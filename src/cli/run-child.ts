import process from 'node:process';
import { executeOrder, type RunOrder } from '../capture/sweep/execute-on-slurm.js';
import { secretsOfCommand, secretsOfEnvironment } from '../model/redaction.js';

// Built as dist/run-child.js: a Slurm task that does one run of a sweep. It ignores the signals of a cancellation until the run, which also
// gets them, has saved its measurements.
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => {});
const order = JSON.parse(process.argv[2]!) as RunOrder;
const secrets = [...secretsOfEnvironment(process.env), ...secretsOfCommand(order.arguments)];
await executeOrder(order, [...new Set(secrets)]);
