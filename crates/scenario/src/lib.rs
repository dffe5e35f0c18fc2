//! Scenario files, the registry of transports and environments, runs.
