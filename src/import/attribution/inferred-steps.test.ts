import { describe, expect, test } from 'vitest';
import { inferSteps } from './inferred-steps.js';
import type { KernelSequence } from './launch-roles.js';

interface Kernel {
  name: string;
  grid?: string;
  takes?: number;
}

const gemm = (grid = '8,1,1', takes = 10): Kernel => ({
  name: 'ampere_fp16_s16816gemm_fp16_128x64_tn',
  grid,
  takes,
});
const attention: Kernel = { name: 'flash_fwd_kernel' };
const argmax: Kernel = { name: 'reduce_kernel<ArgMaxOps<float>>' };
const topk: Kernel = { name: 'at::native::sbtopk::gatherTopK<float>' };
const embedding: Kernel = { name: 'indexSelectSmallIndex<c10::Half>' };
const times = (n: number, kernels: Kernel[]) => Array.from({ length: n }, () => kernels).flat();
const layer = (grid?: string, takes?: number) => [...times(4, [gemm(grid, takes)]), attention];
const pass = (grid?: string, takes?: number) => [embedding, ...times(3, layer(grid, takes)), argmax];

function sequenceOf(kernels: readonly Kernel[]): KernelSequence {
  const codes = new Map<string, number>();
  const launches: KernelSequence['launches'][number][] = [];
  const code = Int32Array.from(kernels, ({ name, grid = null }) => {
    const key = `${name},${grid}`;
    if (!codes.has(key)) codes.set(key, launches.push({ name, grid }) - 1);
    return codes.get(key)!;
  });
  const dur_ns = Float64Array.from(kernels, ({ takes = 5 }) => takes);
  let now = 0;
  const start_ns = dur_ns.map((takes) => (now += takes) - takes);
  return { rows: kernels.length, code, dur_ns, start_ns, launches };
}

const kindsOf = (kernels: readonly Kernel[]) => {
  const inferred = inferSteps(sequenceOf(kernels));
  return 'why' in inferred ? inferred.why : inferred.steps.map(({ kind }) => kind).join(' ');
};

describe('generation', () => {
  test('decode steps follow a prompt', () => {
    expect(kindsOf([...pass('64,1,1', 80), ...times(4, pass())])).toBe('prefill decode decode decode decode');
  });

  test('work before the first pass belongs to no step', () => {
    const random: Kernel = { name: 'distribution_elementwise_grid_stride_kernel' };
    const inferred = inferSteps(sequenceOf([...times(30, [gemm('2,2,1')]), random, ...times(5, pass())]));
    expect(inferred).toMatchObject({ confidence: 1 });
    const { first, last } = 'steps' in inferred ? inferred.steps[0]! : { first: 0, last: 0 };
    expect(last - first + 1).toBeLessThanOrEqual(pass().length + 1);
  });

  test('equal passes without a prompt may be prefills: their kind stays unknown', () => {
    expect(kindsOf(times(5, pass()))).toBe('other other other other other');
    const gemv: Kernel = { name: 'gemv2T_kernel_val<int, int, __half>' };
    const decode = [embedding, ...times(3, [...times(4, [gemv]), attention]), argmax];
    expect(kindsOf(times(5, decode))).toBe('decode decode decode decode decode');
  });

  const tiled = (blocks: number): Kernel => ({
    name: 'nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT',
    grid: `${blocks},1,1`,
  });
  const tiledPass = (blocks: number, layers = 3) => [
    embedding,
    ...times(layers, [...times(4, [tiled(blocks)]), attention]),
    argmax,
  ];

  test('a prompt has GEMMs with more outputs, even if it is faster, or has other numbers of kernels than a token', () => {
    const slow: Kernel = { name: 'elementwise_kernel', takes: 1000 };
    const token = [...tiledPass(32).slice(0, -1), slow, argmax];
    const steps = 'prefill decode decode decode decode';
    expect(kindsOf([...tiledPass(256), ...times(4, token)])).toBe(steps);
    expect(kindsOf([...tiledPass(256, 4), ...times(4, token)])).toBe(steps);
    // Compiled after a first pass of as many tokens, which launches other kernels.
    const rope: Kernel = { name: 'elementwise_kernel', grid: '4096,1,1', takes: 1000 };
    expect(kindsOf([embedding, rope, tiled(33), ...tiledPass(32).slice(2), ...times(4, tiledPass(32))])).toBe(
      'other other other other other',
    );
  });

  test('experts, with other launches in every step', () => {
    const experts = [33, 31, 30, 34, 32].flatMap((blocks) => tiledPass(blocks));
    expect(kindsOf([...tiledPass(256), ...experts])).toBe('prefill decode decode decode decode decode');
  });

  test('preparation before the first step may take longer than all steps', () => {
    const capture = times(30, [...times(5, [gemm('8,1,1', 1000)]), attention]);
    expect(kindsOf([...capture, ...pass('64,1,1', 80), ...times(4, pass())])).toBe(
      'prefill decode decode decode decode',
    );
    // After the steps, other work means that they are not what the program does.
    expect(kindsOf([...times(5, pass()), ...capture])).toContain('no sampling');
  });

  const lookup = (grid: string): Kernel => ({ name: 'vectorized_gather_kernel<16, long>', grid });

  test("an encoder's prompt ends where its decoder starts; a kernel that runs once per request separates no steps", () => {
    const crossKeys = times(3, [tiled(256)]);
    const generation = [
      lookup('1,1,1'),
      ...times(2, [...times(4, [tiled(512)]), attention]),
      embedding,
      ...crossKeys,
      ...tiledPass(32).slice(1),
      ...times(9, tiledPass(32)),
    ];
    const steps = ['prefill', ...Array.from({ length: 10 }, () => 'decode')];
    expect(kindsOf(times(3, generation))).toBe([...steps, ...steps, ...steps].join(' '));
  });

  test('periods that cut each other are not steps', () => {
    const pairs = [topk, ...times(2, layer())];
    expect(kindsOf(times(8, [embedding, ...layer(), ...times(2, pairs), topk, ...layer()]))).toContain(
      'two periods',
    );
  });

  test("a router's softmax and top-k separate layers, not steps", () => {
    const router: Kernel[] = [{ name: 'softmax_warp_forward<float, float, float, 3>' }, topk];
    const model = [embedding, ...times(3, [...times(8, [gemm()]), attention, ...router])];
    expect(kindsOf(times(8, model)).split(' ')).toHaveLength(8);
  });

  test("a router's top-k separates layers, not steps", () => {
    const routed = [...layer(), topk, gemm('2,1,1')];
    expect(kindsOf(times(24, routed))).toBe(
      'no sampling, embedding or optimizer kernel separates passes with equal numbers of GEMMs',
    );
    const model = [embedding, ...times(6, routed), argmax];
    expect(kindsOf([...times(3, model)]).split(' ')).toHaveLength(3);
  });

  test('unequal parts, too few parts, and operations without attention are not steps', () => {
    expect(kindsOf([...pass(), ...times(5, layer()), argmax, ...times(9, layer()), argmax])).toContain(
      'no sampling',
    );
    expect(kindsOf(times(2, pass()))).toContain('no sampling');
    expect(kindsOf(times(200, [gemm(), { name: 'vectorized_elementwise_kernel' }]))).toContain(
      'no attention',
    );
  });
});

describe('training', () => {
  const backward: Kernel = { name: 'flash_bwd_dq_dk_dv_loop_kernel' };
  const forward = [embedding, ...times(3, layer())];
  const gradients = times(3, [...times(8, [gemm('3,1,1')]), backward]);
  const adam: Kernel = { name: 'multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>' };
  const foreach: Kernel = { name: 'multi_tensor_apply_kernel<BinaryOpListAlphaFunctor<float, 2>>' };

  test('a step ends with the optimizer, for any number of its kernels', () => {
    expect(kindsOf(times(4, [...forward, ...gradients, adam, adam]))).toBe(
      'training training training training',
    );
    expect(kindsOf(times(4, [...forward, ...gradients, foreach, foreach]))).toBe(
      'training training training training',
    );
  });

  test('without an optimizer nothing separates the steps, and sampling does not', () => {
    expect(kindsOf(times(4, [...forward, ...gradients, argmax]))).toContain('none of an optimizer');
  });
});
