import { answerRequests } from './sqlite-lanes.js';

answerRequests();
