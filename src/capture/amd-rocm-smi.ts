import { amount, bytes, fieldOf, type Json, textOf } from './amd-json.js';
import type { AmdReading } from './amd-smi.js';
import { emptyGpuDetails, emptyGpuSample } from './telemetry-gpu.js';

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
 * `rocm-smi … --json`, the tool before amd-smi: one object a card with the table's own headings as keys and texts as
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
