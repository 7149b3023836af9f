import { amount, bytes, fieldOf, type Json, textOf } from './amd-json.js';
import type { AmdReading } from './amd-smi.js';
import { emptyGpuDetails, emptyGpuSample, type GpuProcess } from './telemetry-gpu.js';

export const rocmSmiArguments = [
  '--showproductname',
  '--showuse',
  '--showmemuse',
  '--showmeminfo',
  'vram',
  '--showpower',
  '--showmaxpower',
  '--showtemp',
  '--showclocks',
  '--showfan',
  '--json',
];

/**
 * `rocm-smi … --json`, the tool before amd-smi: one object per card with the table headings as keys and texts as
 * values, which changed over the years:
 * `{"card0": {"GPU use (%)": "37", "Average Graphics Package Power (W)": "22.0", "sclk clock speed:": "(1090Mhz)", …}}`
 */
export function rocmSmiCards(document: Json): (AmdReading & { name: string | null })[] {
  if (typeof document !== 'object' || document === null) return [];
  return Object.entries(document).flatMap(([key, card]) => {
    const number = /^card(\d+)$/.exec(key)?.[1];
    if (number === undefined) return [];
    const first = (...names: string[]): Json =>
      names.map((name) => fieldOf(card, name)).find((value) => amount(value) !== null);
    const sample = emptyGpuSample();
    const details = emptyGpuDetails();
    sample.utilizationPercent = amount(first('GPU use (%)'));
    sample.memoryUtilizationPercent = amount(first('GPU Memory Read/Write Activity (%)'));
    sample.powerW = amount(
      first('Current Socket Graphics Package Power (W)', 'Average Graphics Package Power (W)'),
    );
    sample.smClockMhz = amount(first('sclk clock speed:'));
    sample.memoryClockMhz = amount(first('mclk clock speed:'));
    sample.temperatureC = amount(first('Temperature (Sensor junction) (C)', 'Temperature (Sensor edge) (C)'));
    sample.memoryUsedBytes = bytes(first('VRAM Total Used Memory (B)'), 'B');
    details.memoryTemperatureC = amount(
      first('Temperature (Sensor memory) (C)', 'Temperature (Sensor mem) (C)'),
    );
    details.fanPercent = amount(first('Fan speed (%)', 'Fan Speed (%)'));
    details.powerLimitW = amount(first('Max Graphics Package Power (W)'));
    return [
      {
        index: Number(number),
        sample,
        details,
        memoryTotalBytes: bytes(first('VRAM Total Memory (B)'), 'B'),
        energyJ: null,
        name: textOf(fieldOf(card, 'Card Series')) ?? textOf(fieldOf(card, 'Card series')),
      },
    ];
  });
}

/**
 * `rocm-smi --showpids --json`: `{"system": {"PID710898": "name, GPUs, VRAM bytes, SDMA, CU occupancy"}}`, one text per process
 * (some versions write "PID 710898"). It does not report which GPUs a process uses.
 */
export function rocmSmiProcesses(document: Json): GpuProcess[] {
  const system = fieldOf(document, 'system');
  if (typeof system !== 'object' || system === null) return [];
  return Object.entries(system as Record<string, unknown>).flatMap(([key, reported]) => {
    const pid = /^PID ?(\d+)$/.exec(key)?.[1];
    if (pid === undefined || typeof reported !== 'string') return [];
    // The name comes first and may contain commas.
    const used = reported.split(',').at(-3)?.trim() ?? '';
    return [{ pid: Number(pid), usedBytes: /^\d+$/.test(used) ? Number(used) : null }];
  });
}
