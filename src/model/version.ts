import packageJson from '../../package.json' with { type: 'json' };

/** inferscope's version in package.json. */
export const toolVersion: string = packageJson.version;
