//! Endpoint pair, fault wires, swarm seeds, the conformance suite. Dev-dependency only.
