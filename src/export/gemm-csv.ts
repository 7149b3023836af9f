import type { Gemm } from '../model/documents/gemms.js';
import type { Figure } from '../model/figure.js';
import { csvLines } from './csv.js';

type Cell = string | number | null;

const valueOf = (figure: Figure | undefined): number | null => figure?.value ?? null;

const columns: [name: string, cell: (gemm: Gemm) => Cell][] = [
  ['source', ({ source }) => source],
  ['execution_id', ({ execution_id }) => execution_id],
  ['capture_id', ({ capture_id }) => capture_id],
  ['m', ({ m }) => m],
  ['n', ({ n }) => n],
  ['k', ({ k }) => k],
  ['batch', ({ batch }) => batch],
  ['dtype', ({ dtype }) => dtype],
  ['compute_type', ({ compute_type }) => compute_type],
  ['layout', ({ layout }) => layout],
  ['made_by', ({ made_by }) => made_by[0]?.name ?? null],
  ['stages', ({ stages }) => stages.join(' ') || null],
  ['calls', ({ calls }) => calls],
  ['total_time_ns', ({ total_time_ns }) => valueOf(total_time_ns)],
  ['flop', ({ flop }) => flop],
  ['intensity_flop_per_byte', ({ arithmetic_intensity }) => valueOf(arithmetic_intensity)],
  ['achieved_flop_per_s', ({ achieved_flops }) => valueOf(achieved_flops)],
  ['peak_share', ({ peak_share }) => valueOf(peak_share)],
  ['roof_ns', ({ roof }) => valueOf(roof?.time_ns)],
  ['roof_share', ({ roof }) => valueOf(roof?.share)],
  ['roof_from', ({ roof }) => roof?.from ?? null],
  ['bound', ({ roof }) => roof?.bound ?? null],
  ['tile', ({ tilings }) => tilings[0]?.tile ?? null],
  ['tiles', ({ tilings }) => valueOf(tilings[0]?.tiles)],
  ['tile_efficiency', ({ tilings }) => valueOf(tilings[0]?.tile_efficiency)],
  ['waves', ({ tilings }) => valueOf(tilings[0]?.waves)],
  ['wave_efficiency', ({ tilings }) => valueOf(tilings[0]?.wave_efficiency)],
  ['alignment_faults', ({ alignment_faults }) => alignment_faults.join('; ') || null],
  ['what_if', ({ what_if }) => (what_if ?? []).map(({ text }) => text).join(' | ') || null],
];

/** RFC 4180, one row per shape and source; missing values are empty. */
export const gemmCsv = (gemms: readonly Gemm[]): string =>
  csvLines([columns.map(([name]) => name), ...gemms.map((gemm) => columns.map(([, cell]) => cell(gemm)))]);
