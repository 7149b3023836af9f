import type { AllowedData } from '../allowable.js';
import { findingsTool } from './findings.js';
import { hardwareTool } from './hardware.js';
import { modelArithmeticTool } from './model-arithmetic.js';
import { programOutputTool } from './program-output.js';
import { schemaTool } from './schema.js';
import { sqlTool } from './sql.js';
import type { AskTool } from './tool.js';
import { waterfallTool } from './waterfall.js';

const defaultTools = [schemaTool, sqlTool, findingsTool, waterfallTool, hardwareTool, modelArithmeticTool];

/** All tools that a model can call. */
export function askTools(allowed: ReadonlySet<AllowedData>): AskTool[] {
  return allowed.has('output') ? [...defaultTools, programOutputTool] : defaultTools;
}
