"""The logs on a screen: a Streamlit app that computes nothing of its own."""
