/** Names the folder for what the processes of one run share. It is deleted at the end of the run. */
export const runFolderEnv = 'SVC_ROUTER_TEST_RUN'
