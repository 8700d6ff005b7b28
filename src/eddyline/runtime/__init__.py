"""Jobs in this process: sources, sinks, running a job, and reporting on it."""
