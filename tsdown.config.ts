import { join } from 'node:path';
import license from 'rollup-plugin-license';
import { defineConfig } from 'tsdown';

/** A plugin that writes the licenses of the bundled libraries to a file in dist. */
function licensePlugin(file: string) {
  return license({ thirdParty: { output: join('dist', file) } });
}

export default defineConfig([
  {
    // cli is the binary; it starts the others as child processes or worker threads.
    entry: {
      cli: 'src/cli/main.ts',
      // Imports one file of `import --ranks`.
      'rank-child': 'src/cli/ranks/rank-child.ts',
      // Executes one run of `sweep --on slurm`.
      'run-child': 'src/cli/run-child.ts',
      'sql-child': 'src/session/sql-child.ts',
      'parquet-child': 'src/session/parquet-child.ts',
      'onnx-workload': 'src/capture/onnx/workload-child.ts',
      'roofline-child': 'src/capture/onnx/roofline-child.ts',
      'kernel-child': 'src/capture/onnx/kernel-child.ts',
      // A worker thread of the nsys importer.
      'nsys-worker': 'src/import/nsys/sqlite-worker.ts',
      // A worker thread of the Kineto importer.
      'kineto-worker': 'src/import/kineto/worker.ts',
      // Worker threads of the session store.
      'scan-worker': 'src/cli/scan-worker.ts',
      'encode-worker': 'src/cli/encode-worker.ts',
      // A worker thread of `serve`.
      'decoder-worker': 'src/engines/onnx/server/decoder-worker.ts',
      // A worker thread of the load generator.
      'load-worker': 'src/load/worker.ts',
    },
    format: 'esm',
    platform: 'node',
    target: 'node20',
    outDir: 'dist',
    clean: true,
    dts: false,
    sourcemap: true,
    logLevel: 'error',
    outExtensions: () => ({ js: '.js' }),
    // Libraries without native code are bundled: installed unbundled, they take 40 MB more.
    plugins: [licensePlugin('third-party-licenses.txt')],
  },
  // Browser scripts, each with everything bundled, because pages fetch nothing from the network.
  ...[
    // The HTML report inlines one of these two: report-client if the page has charts, else report-reading.
    { 'report-reading': 'src/render/client/reading.ts' },
    { 'report-client': 'src/render/client/main.ts' },
    // Scripts of the pages of `ui`.
    { 'ui-sessions': 'src/ui/client/sessions.ts' },
    { 'ui-timeline': 'src/ui/client/served.ts' },
    { 'ui-exported': 'src/ui/client/exported.ts' },
    { 'ui-sql': 'src/ui/client/sql.ts' },
    { 'ui-what-if': 'src/ui/client/what-if.ts' },
    { 'ui-save': 'src/ui/client/save.ts' },
  ].map((entry) => ({
    entry,
    format: 'iife' as const,
    platform: 'browser' as const,
    target: 'es2020',
    outDir: 'dist',
    clean: false,
    dts: false,
    minify: true,
    logLevel: 'error' as const,
    plugins: [licensePlugin('third-party-licenses-report.txt')],
    deps: { alwaysBundle: /.*/, onlyBundle: false as const },
    outputOptions: { entryFileNames: '[name].js' },
  })),
]);
