import packageJson from '../../package.json' with { type: 'json' };

/** inferscope's own version, as package.json states it. */
export const toolVersion: string = packageJson.version;
