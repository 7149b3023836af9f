/**
 * Constants of nvml.h (read from API version 13, 2026; the values have not changed since they were added).
 */

/** nvmlReturn_t. */
const returnNames: Record<number, string> = {
  0: 'NVML_SUCCESS',
  1: 'NVML_ERROR_UNINITIALIZED',
  2: 'NVML_ERROR_INVALID_ARGUMENT',
  3: 'NVML_ERROR_NOT_SUPPORTED',
  4: 'NVML_ERROR_NO_PERMISSION',
  6: 'NVML_ERROR_NOT_FOUND',
  7: 'NVML_ERROR_INSUFFICIENT_SIZE',
  8: 'NVML_ERROR_INSUFFICIENT_POWER',
  9: 'NVML_ERROR_DRIVER_NOT_LOADED',
  10: 'NVML_ERROR_TIMEOUT',
  11: 'NVML_ERROR_IRQ_ISSUE',
  12: 'NVML_ERROR_LIBRARY_NOT_FOUND',
  13: 'NVML_ERROR_FUNCTION_NOT_FOUND',
  14: 'NVML_ERROR_CORRUPTED_INFOROM',
  15: 'NVML_ERROR_GPU_IS_LOST',
  16: 'NVML_ERROR_RESET_REQUIRED',
  17: 'NVML_ERROR_OPERATING_SYSTEM',
  18: 'NVML_ERROR_LIB_RM_VERSION_MISMATCH',
  19: 'NVML_ERROR_IN_USE',
  20: 'NVML_ERROR_MEMORY',
  21: 'NVML_ERROR_NO_DATA',
  23: 'NVML_ERROR_INSUFFICIENT_RESOURCES',
  25: 'NVML_ERROR_ARGUMENT_VERSION_MISMATCH',
  26: 'NVML_ERROR_DEPRECATED',
  27: 'NVML_ERROR_NOT_READY',
  28: 'NVML_ERROR_GPU_NOT_FOUND',
  29: 'NVML_ERROR_INVALID_STATE',
  999: 'NVML_ERROR_UNKNOWN',
};

export const nvmlSuccess = 0;
export const nvmlNoPermission = 4;
export const nvmlInsufficientSize = 7;
export const nvmlFunctionNotFound = 13;

export function nvmlReturnName(code: number): string {
  return returnNames[code] ?? `NVML_ERROR_${code}`;
}

/** Whether an error is permanent for the life of the process, so that retrying at 50 Hz would only cost time. */
export function isPermanent(code: number): boolean {
  // not supported, no permission, function not found, struct version rejected, deprecated
  return code === 3 || code === 4 || code === 13 || code === 25 || code === 26;
}
