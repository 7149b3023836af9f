import { expect, test } from 'vitest';
import { messageFilter, removeProfilerMessages } from './profiler-messages.js';

/** Output of nsys 2025.3.2 and ncu 2025.3.1 around our workloads on the H200, with shortened paths. */
const nsysEnd =
  "Collecting data...\nGenerating '/tmp/nsys-report-457b.qdstrm'\n" +
  '\r[1/1] [0%                          ] nsys.nsys-rep\r[1/1] [=====29%                    ] nsys.nsys-rep' +
  '\r[1/1] [========================100%] nsys.nsys-rep\r[1/1] [========================100%] nsys.nsys-rep\n' +
  'Generated:\n\t/tmp/h/sessions/.tmp-523/scratch/nsys/nsys.nsys-rep\n';
const ncuConnected =
  '==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results may be inconsistent.\n' +
  '==PROF== Connected to process 1200 (/usr/bin/python3.12)\n';
const ncuKernel = '==PROF== Profiling "reduce_kernel": 0%....50%....100% - 38 passes\n';
const ncuEnd =
  '==PROF== Disconnected from process 1200\n==PROF== Report: /tmp/h/sessions/.tmp-1014/scratch/ncu/ncu.ncu-rep\n';

/** Passes the text in chunks of this size, since a pipe may split it anywhere. */
function filtered(tool: string, text: string, size: number): string {
  const filter = messageFilter(tool)!;
  const bytes = Buffer.from(text);
  const parts: Buffer[] = [];
  for (let i = 0; i < bytes.length; i += size) parts.push(filter.take(bytes.subarray(i, i + size)));
  return Buffer.concat([...parts, filter.flush()]).toString();
}

const sizes = [1, 2, 3, 7, 50, 1 << 20];

test.each(sizes)("keeps the program's bytes without nsys and ncu messages (chunks of %i)", (size) => {
  expect(filtered('nsys', `{"tpot_ms": 12.5}\n${nsysEnd}`, size)).toBe('{"tpot_ms": 12.5}\n');
  expect(filtered('nsys', `ohne Zeilenende ü${nsysEnd}`, size)).toBe('ohne Zeilenende ü');
  // A message may interrupt a line of a program that streams tokens.
  const streamed = `${ncuConnected}Once ${ncuKernel}upon a ${ncuKernel}${ncuKernel}time\n${ncuEnd}`;
  expect(filtered('ncu', streamed, size)).toBe('Once upon a time\n');
});

test.each(sizes)('removes torch profiler messages, keeps its errors (chunks of %i)', (size) => {
  const begin = 'USDT:2026-11-21 15:23:17 4686:4686 SyncActivityProfilerHandler.cpp:52] profiler_start\n';
  const end =
    'USDT:2026-11-21 15:23:17 4686:4686 SyncActivityProfilerHandler.cpp:59] profiler_stop\n' +
    'ERROR:2026-11-21 15:23:17 4686:4686 DeviceProperties.cpp:50] gpuGetDeviceCount failed with code 35\n';
  const programText =
    "ERROR:2026-11-21 the program's\nERROR:root:no\nUSDT:2026-11-21\n" +
    'ERROR:2026-11-21 15:23:17 4686:4686 CuptiActivityApi.cpp:80] CUPTI_ERROR_NOT_INITIALIZED\n';
  expect(filtered('torch', `${begin}${programText}${end}`, size)).toBe(programText);
});

test.each(sizes)('keeps similar texts of a program (chunks of %i)', (size) => {
  const programText = [
    'Collecting data...\nGenerating tokens\nCollecting data...\n',
    'Generated:\n\tfour tokens\nGenerated:\n\n',
    "Generating '/tmp/out.txt'\nCapture range of the camera\n",
    '\r[1/1] [==   ] model.safetensors\r[1/1] [====100%] model.safetensors\n',
    '==PROF== of my own\n==ERROR== ERR_NVGPUCTRPERM\n== WARNING\n',
    'Collecting data...\n',
    'Col',
    '\r\n\r\n\u0000==P',
  ].join('');
  expect(filtered('nsys', programText, size)).toBe(programText);
  expect(filtered('ncu', programText, size)).toBe(programText);
});

test('shows text at once when it cannot become a message', () => {
  const filter = messageFilter('ncu')!;
  expect(filter.take(Buffer.from('>>> ')).toString()).toBe('>>> ');
  expect(filter.take(Buffer.from('==')).toString()).toBe('');
  expect(filter.take(Buffer.from('= a title')).toString()).toBe('=== a title');
  expect(messageFilter('none')).toBeNull();
  expect(removeProfilerMessages(null, nsysEnd)).toBe(nsysEnd);
});
