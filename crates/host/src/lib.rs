//! Submission queues, I/O schedulers and volumes.
