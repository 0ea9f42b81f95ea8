"""Power meters, chosen per host by what is there, and the one sampler that reads them while a run runs."""
