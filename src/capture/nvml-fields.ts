import { nvmlSuccess } from './nvml-codes.js';
import { Words } from './nvml-calls.js';

/** NVML_FI_DEV_…: ids for nvmlDeviceGetFieldValues. */
export const fieldId = {
  memoryTemperature: 82,
  /** KiB over all links with the scope `allLinks`. */
  nvlinkTx: 138,
  nvlinkRx: 139,
  powerInstant: 186, // 535
  pcieTxBytes: 197, // 550
  pcieRxBytes: 198,
} as const;

/** scopeId of NVLink counters: all links of the GPU. */
export const allLinks = 0xffffffff;

/** nvmlFieldValue_t: u32 fieldId, u32 scopeId, i64 timestamp, i64 latencyUsec, u32 valueType, u32 nvmlReturn, value. */
const size = 40;
const typeOffset = 24;
const returnOffset = 28;
const valueOffset = 32;

type FieldAnswer =
  | { value: number; /** Integers of 32 bits wrap. */ bits: 32 | 64 }
  | { value: null; code: number };

/** Buffer for these fields in one call, with the driver's answers. */
export class FieldValues {
  private readonly words: Words;

  constructor(private readonly fields: readonly (readonly [id: number, scope: number])[]) {
    this.words = new Words(size * fields.length);
  }

  get count(): number {
    return this.fields.length;
  }

  /** The array to pass, with the ids written again: the driver fills the rest. */
  request(): Uint8Array {
    this.fields.forEach(([id, scope], index) => {
      this.words.setU32(index * size, id);
      this.words.setU32(index * size + 4, scope);
    });
    return this.words.bytes;
  }

  at(index: number): FieldAnswer {
    const start = index * size;
    const code = this.words.u32(start + returnOffset);
    if (code !== nvmlSuccess) return { value: null, code };
    const value = start + valueOffset;
    // nvmlValueType_t
    switch (this.words.u32(start + typeOffset)) {
      case 0:
        return { value: this.words.f64(value), bits: 64 };
      case 1:
        return { value: this.words.u32(value), bits: 32 };
      case 5:
        return { value: this.words.i32(value), bits: 32 };
      case 6:
        return { value: this.words.u32(value) & 0xffff, bits: 32 };
      default:
        return { value: this.words.u64(value), bits: 64 };
    }
  }
}
